"""The pages in a real browser: on a phone, on a desk and on A4. The numbers in them are made up."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import synthetic
from playwright.sync_api import Browser, Page

from minigts.report import comparison_page, render, style
from minigts.report.compare import compare

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SAMPLE = Path(__file__).parents[1] / "unit" / "report_sample"
PAGES = ("campaign", "run", "by-hops", "comparison")
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (box) => box && getComputedStyle(box).overflowX === 'auto';
  return [...document.body.querySelectorAll('*')]
    .filter((element) => !element.closest('svg') && !scrolls(element.closest('.wide')))
    .filter((element) => element.getBoundingClientRect().right > width + 0.5)
    .map((element) => `${element.tagName} ${element.textContent.slice(0, 40)}`);
}"""
"""What reaches beyond the right edge, but for what lies in a box that scrolls by itself."""
FIGURES = """() => [...document.querySelectorAll('figure > svg')].map((svg) => {
  const box = svg.getBoundingClientRect();
  return {left: box.left, right: box.right, width: box.width, height: box.height, shown: svg.checkVisibility(),
          drawn: svg.querySelectorAll('path, use').length};
})"""


@dataclass(frozen=True)
class Layout:
    """How a page is looked at. 180 mm are what A4 leaves between the page's margins, at 96 dots an inch."""

    width: int
    height: int
    media: str = "screen"
    scheme: str = "light"


LAYOUTS = {
    "phone": Layout(360, 780),
    "phone, dark": Layout(390, 844, scheme="dark"),
    "desk": Layout(1280, 900),
    "A4": Layout(680, 1000, media="print"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each kind of page, written once, without the figures' PNG and PDF: a page has its figures in itself."""
    where = tmp_path_factory.mktemp("pages")
    campaign = synthetic.campaign(where / "campaign")
    by_hops = Path(shutil.copytree(SAMPLE, where / "by-hops"))
    run, other = campaign / "udp-sweep-20261121-100000", campaign / "cpu-20261121-100000"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "figure_bytes", lambda *_: b"")
        render(by_hops)
        return {
            "campaign": render(campaign),
            "run": run / "report.html",
            "by-hops": by_hops / "report.html",
            "comparison": comparison_page.page(compare(campaign, campaign), other / "compared.html"),
        }


@pytest.fixture
def look(chromium: Browser, pages: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[tuple[Page, list[str]]]:
    """The page in its layout, and what it asked for or complained about."""
    name, layout = request.param
    how = LAYOUTS[layout]
    said: list[str] = []
    page = chromium.new_page(viewport={"width": how.width, "height": how.height})
    page.on("request", lambda asked: said.append(asked.url) if asked.url != pages[name].as_uri() else None)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    media: Any = how.media
    scheme: Any = how.scheme
    page.emulate_media(media=media, color_scheme=scheme)
    page.goto(pages[name].as_uri())
    yield page, said
    page.close()


@pytest.mark.parametrize("look", [(page, layout) for page in PAGES for layout in LAYOUTS], indirect=True, ids="-".join)
def test_it_fits_shows_its_figures_and_asks_for_nothing(look: tuple[Page, list[str]]) -> None:
    page, said = look
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOW) == []
    figures, width = page.evaluate(FIGURES), page.evaluate("innerWidth")
    assert figures
    for figure in figures:
        assert figure["shown"]
        assert figure["drawn"] > 10
        assert figure["height"] > 40
        assert 0.5 * width < figure["width"] <= width
        assert figure["left"] >= -0.5
        assert figure["right"] <= width + 0.5


@pytest.mark.parametrize("look", [("by-hops", "A4")], indirect=True, ids="-".join)
def test_on_paper_what_is_folded_is_open(look: tuple[Page, list[str]]) -> None:
    page, _ = look
    folded = "[...document.querySelectorAll('details')].map((each) => each.lastElementChild.checkVisibility())"
    shown = page.evaluate(folded)
    assert shown
    assert all(shown)


@pytest.mark.parametrize("look", [("campaign", "A4")], indirect=True, ids="-".join)
def test_it_prints(look: tuple[Page, list[str]]) -> None:
    page, _ = look
    assert page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("look", [("campaign", "phone")], indirect=True, ids="-".join)
def test_a_verdict_leads_to_its_experiment(look: tuple[Page, list[str]]) -> None:
    page, _ = look
    page.click("table.overview a >> nth=3")
    assert page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top") < 40

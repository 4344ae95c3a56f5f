"""The page of `minigts serve` in a real browser, on a lab in virtual time: clicked, typed, a link cut."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from live.conftest import MakeLab, quiet
from live.pages import PATIENCE_MS, chromium, opened, slide
from live.program import TOPOLOGIES, Program
from minigts.lab import Lab, edit
from minigts.topology.edit import add_host

pytestmark = [
    pytest.mark.touched("tools/minigts/serve"),
    pytest.mark.browser,
    pytest.mark.virtual,
    pytest.mark.timeout(600),
]

ENDED_S = 120.0
SHELLS_ENDED = "while ls /dev/pts | grep -q '^[0-9]'; do sleep 0.1; done"


@pytest.fixture
def pair(make_lab: MakeLab) -> Lab:
    return make_lab(TOPOLOGIES / "pair.yaml")


@pytest.fixture
def served(pair: Lab, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program that serves the lab, and the address that it has printed."""
    started = Program(tmp_path).start(
        "serve",
        pair.name,
        "--every",
        "0.2",
        "--results",
        str(tmp_path / "results"),
        "--token-file",
        str(tmp_path / "token"),
    )
    assert started.stdout is not None
    yield started, started.stdout.readline().strip()
    if started.poll() is None:
        started.send_signal(signal.SIGINT)
    started.communicate(timeout=ENDED_S)


@pytest.fixture
def browser(browser_program: str) -> Iterator[Browser]:
    with chromium(browser_program) as started:
        yield started


def lit_below(row: Locator) -> bool:
    """Whether pixels under the middle of a terminal's row are lit, near its first letter."""
    from matplotlib.image import imread  # noqa: PLC0415 -- half a second, when tests are collected

    drawn = imread(BytesIO(row.screenshot()), format="png")
    return bool(drawn[len(drawn) // 2 :, :12, :3].max() > 0.3)


def has_eighty_columns_and_underscores(page: Page) -> None:
    """Assert it of the terminal on ams."""
    page.click("[data-host=ams]")
    page.keyboard.type("clear; tput cols; printf '__%s__\\n' __\n")
    rows = page.locator(".screen:visible .xterm-rows > div")
    underscores = rows.filter(has_text=re.compile("^______$"))
    expect(underscores).to_have_count(1)
    assert int(rows.filter(has_text=re.compile(r"^\d+$")).inner_text()) >= 80
    # One column of the page has letters of 14 pixels, whose underscores lie lowest in a row.
    for width, letters in ((1280, "13px"), (1100, "14px"), (1280, "13px")):
        page.set_viewport_size({"width": width, "height": 844})
        expect(page.locator(".screen:visible .xterm-rows")).to_have_css("font-size", letters)
        expect(underscores).to_have_count(1)
        assert lit_below(underscores), f"underscores of {letters} vanish"
        # Whether a row as low as its letters loses them depends on rounding, so rows are higher than that (17 of 14).
        box = underscores.bounding_box()
        assert box is not None
        assert box["height"] > 1.35 * int(letters.removesuffix("px"))


def clock_s(page: Page) -> float:
    return float(page.inner_text("#clock").split()[2])


def scraped_clock_s(url: str, token: Path) -> float:
    """The lab's clock as Prometheus is told it, with the token that `serve` has written."""
    assert token.stat().st_mode & 0o077 == 0
    asked = Request(urljoin(url, "/metrics"), headers={"Authorization": f"Bearer {token.read_text()}"})
    with urlopen(asked) as answer:
        found = re.search(r"^minigts_lab_clock_seconds\{.*\} (.*)$", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_two_pages_at_work_on_one_lab(
    served: tuple[subprocess.Popen[str], str], browser: Browser, pair: Lab, tmp_path: Path
) -> None:
    program, url = served
    expect.set_options(timeout=PATIENCE_MS)
    said: list[str] = []
    desk, phone = (opened(browser, url, said, width) for width in (1280, 390))

    for page in (desk, phone):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("location.search + location.hash + document.cookie") == ""
    expect(desk.locator("#clock")).to_contain_text("stands still")
    before_s = clock_s(desk)
    first_s = scraped_clock_s(url, tmp_path / "token")
    desk.wait_for_timeout(1000)
    assert scraped_clock_s(url, tmp_path / "token") == first_s
    assert clock_s(desk) == before_s, "to look lets no time pass"

    for page, host in ((desk, "ams"), (phone, "bra")):
        page.click(f"[data-host={host}]")
        page.wait_for_selector(".xterm-helper-textarea", state="attached")
        page.keyboard.type("ip -brief addr show eth1; echo $((6*7))\n")
    expect(desk.locator(".xterm-accessibility-tree")).to_contain_text(pair.plan.host("ams").ports[0].address)
    expect(phone.locator(".xterm-accessibility-tree")).to_contain_text(pair.plan.host("bra").ports[0].address)

    assert desk.locator("#links tr .dropped").all_inner_texts() == ["0", "0"]  # the certificate's are not counted
    has_eighty_columns_and_underscores(desk)

    slide(desk, "#delay", "40")
    expect(phone.locator("#map .first")).to_have_text("80 ms")
    desk.select_option("#seconds", "60")
    desk.click("#ping")
    expect(desk.locator("#figures")).to_contain_text(re.compile(r"now 80(\.\d)? ms"))
    assert clock_s(desk) > before_s

    phone.click("#cut")
    expect(desk.locator("#map .first")).to_have_text("cut")
    expect(desk.locator("#links tr").first.locator("td.bad")).to_have_text("cut")
    lost = desk.locator("#links tr").first.locator("td").nth(7)
    expect(lost).to_have_text(re.compile("[1-9]"))
    expect(desk.locator("#figures")).to_contain_text(re.compile(r"no answer for [\d.]+ s, .* [1-9]\d* lost"))
    desk.click("#ping")
    desk.click("#declared")
    phone.click("#cut")
    expect(desk.locator("#map .first")).to_have_text("17.7 ms")
    assert pair.read_record().changed == {}
    assert pair.read_record().cut == frozenset()
    assert said == []

    now = Lab(pair.rundir)
    edit.alter(now, add_host(now.plan, "par", "bra", {"rtt": "4ms"}), quiet)
    for page in (desk, phone):
        expect(page.locator("#map [data-machine=par]")).to_have_count(1)
        expect(page.locator("#map [data-link=par-bra] .first")).to_have_text("4 ms")
    expect(desk.locator("#chosen")).to_have_text("Link ams-bra")
    said.clear()  # the terminal on bra ended with its kernel

    program.send_signal(signal.SIGINT)
    assert program.wait(ENDED_S) == 0
    pair.provider.run("ams", ["sh", "-c", SHELLS_ENDED], timeout_s=120)

"""The drawing and the table of `minigts serve` in a real browser, for each shape of network. Its hosts hold what they
are told and run nothing, so the figures are those that the test gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tc_hosts
from playwright.sync_api import Browser, Page, expect

from browser.serving import served
from minigts import lab as labs
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
LESSON = (
    "name: l\nhosts: {ams: {}, bra: {}, lju: {}, mil: {}}\nlinks: [{ends: [ams, bra], delay: 10ms, rate: 10mbit},\n"
)
LESSON += "{ends: [bra, lju], delay: 7.5ms, rate: 10mbit}, {ends: [lju, mil], delay: 15ms}]\n"
LONG = "name: l\nhosts: {a-host-so-named: {location: a-place-with-a-name}, with-a-long-nam: {}, c: {}}\n"
LONG += "links: [{ends: [a-host-so-named, with-a-long-nam], rtt: 1ms}, {ends: [with-a-long-nam, c]}]\n"
NETWORKS = {
    name: (TOPOLOGIES / f"{name}.yaml").read_text() for name in ("pair", "chain6", "mesh6", "chain21", "clos")
} | {"lesson": LESSON, "long": LONG}

BOXES = """() => {
  const box = (each) => {
    const {left, right, top, bottom} = each.getBoundingClientRect();
    return {left, right, top, bottom, text: each.textContent};
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (each) => each.textContent && getComputedStyle(each).visibility === 'visible';
  const drawing = document.querySelector('#drawing');
  return {words: all('#map text:not(.inside)').filter(shown).map(box), nodes: all('#map .node').map(box),
          drawing: box(document.querySelector('#map')), scrolls: drawing.scrollWidth > drawing.clientWidth + 1,
          wide: document.documentElement.scrollWidth > innerWidth};
}"""
"""Where the words and the machines are. A name inside its machine's disc is no word of its own."""

Box = dict[str, float]


def meet(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge of half a pixel."""
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > 0.5 and down > 0.5


@pytest.fixture
def brought_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Lab]:
    tc_hosts.use(monkeypatch, tmp_path)
    return lambda text: labs.up(parse(text, "network.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What server and pages complain of: nothing."""
    heard: list[str] = []
    yield heard
    assert heard == []


@pytest.fixture
def opened(chromium: Browser, said: list[str]) -> Callable[[str, int], Page]:
    def open_(url: str, width: int) -> Page:
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.set_default_timeout(20_000)
        page.goto(url)
        page.wait_for_selector("#links tr", state="attached")
        return page

    return open_


def carry(lab: Lab, mbit: float, seconds: float) -> None:
    """All links have carried that much more, in both directions."""
    network = tc_hosts.NETWORKS[lab.rundir]
    for machine in lab.plan.machines:
        for port in machine.ports:
            sent, frames = network.sent[machine.name, port.name]
            network.sent[machine.name, port.name] = (sent + int(mbit * seconds * 125_000), frames + 1000)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("mesh6", "lesson") else pytest.mark.nightly) for name in NETWORKS],
)
def test_a_network_fits_and_no_two_of_its_words_touch(
    name: str, brought_up: Callable[[str], Lab], opened: Callable[[str, int], Page], said: list[str], tmp_path: Path
) -> None:
    lab = brought_up(NETWORKS[name])
    with served(lab, tmp_path, said) as access:
        page = opened(access.url, 1280)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 900})
            for mbit, shown in ((0.0, "0.0 / 0.0"), (95.5, r"9\d\.\d / 9\d\.\d")):
                tc_hosts.NETWORKS[lab.rundir].mbit = mbit
                expect(page.locator("#map .second").first).to_have_text(re.compile(shown), timeout=20_000)
                look(page, lab)


def look(page: Page, lab: Lab) -> None:
    """Everything of the network lies within the page, apart from each other; the chosen link's figures are shown."""
    seen = page.evaluate(BOXES)
    words, nodes, drawing = seen["words"], seen["nodes"], seen["drawing"]
    assert (seen["wide"], seen["scrolls"], len(nodes)) == (False, False, len(lab.plan.machines))
    for index, word in enumerate(words):
        assert word["left"] >= drawing["left"] - 0.5
        assert word["right"] <= drawing["right"] + 0.5
        assert [other for other in (*words[index + 1 :], *nodes) if meet(word, other)] == [], word
    expect(page.locator("#chosen-now")).to_contain_text("ms, ")


NAMES = """() => [...document.querySelectorAll('#map .name')].map((each) => each.classList.contains('inside'))"""


@pytest.mark.parametrize(("names", "inside"), [(("left", "middle", "right"), False), (("ams", "bra", "lju"), True)])
def test_names_stand_alike_and_a_narrow_page_shows_every_column(
    names: tuple[str, str, str],
    inside: bool,
    brought_up: Callable[[str], Lab],
    opened: Callable[[str, int], Page],
    said: list[str],
    tmp_path: Path,
) -> None:
    chain = f"name: l\nchain: {{hosts: [{', '.join(names)}], link: {{rtt: 10ms, rate: 20mbit, queue: 75kB}}}}\n"
    with served(brought_up(chain), tmp_path, said) as access:
        page = opened(access.url, 900)
        assert page.evaluate(NAMES) == [inside] * 3
        assert page.locator("#numbers .wide").evaluate("(table) => table.scrollWidth - table.clientWidth") <= 1
        expect(page.locator("#links .queue").first).to_have_text("75")


def test_a_lab_of_no_lesson_has_none_beside_it_until_one_is_chosen(
    brought_up: Callable[[str], Lab], opened: Callable[[str, int], Page], said: list[str], tmp_path: Path
) -> None:
    with served(brought_up(NETWORKS["pair"]), tmp_path, said) as access:
        page = opened(access.url, 1280)
        expect(page.locator("#lesson-name option").first).to_have_text("choose one")
        expect(page.locator("#lesson-text")).to_be_empty()
        page.select_option("#lesson-name", "3-queues")
        expect(page.locator("#lesson-text h1")).to_contain_text("Lesson 3")
        page.select_option("#lesson-name", "")
        expect(page.locator("#lesson-text")).to_be_empty()


def test_what_was_dropped_before_is_not_shown_and_what_is_dropped_now_is(
    brought_up: Callable[[str], Lab], opened: Callable[[str, int], Page], said: list[str], tmp_path: Path
) -> None:
    """A certificate fills the queue to measure the rate."""
    lab = brought_up(NETWORKS["pair"])
    drops = tc_hosts.NETWORKS[lab.rundir].drops
    drops["ams", "eth1"] = 23
    carry(lab, 100.0, 1.0)
    with served(lab, tmp_path, said) as access:
        page = opened(access.url, 1280)
        dropped = page.locator("#links tr").first.locator(".dropped")
        expect(dropped).to_have_text("0")
        carry(lab, 1.0, 1.0)
        drops["ams", "eth1"] += 2
        expect(dropped).to_have_text("2")
        drops["ams", "eth1"] = 1
        tc_hosts.NETWORKS[lab.rundir].sent.clear()
        expect(dropped).to_have_text("1")  # the host was restarted, and its counters began anew


def test_rate_and_queue_are_set_by_slider_and_by_figure(
    brought_up: Callable[[str], Lab], opened: Callable[[str, int], Page], said: list[str], tmp_path: Path
) -> None:
    lab = brought_up(LESSON)
    with served(lab, tmp_path, said) as access:
        page = opened(access.url, 1280)
        exact = {name: page.locator(f"#{name}-exact") for name in ("delay", "loss", "rate", "queue")}
        expect(exact["rate"]).to_have_value("10")
        exact["queue"].fill("50")
        exact["queue"].press("Enter")
        expect(page.locator("#links tr").first.locator(".queue")).to_have_text("50")
        page.fill("#rate", "60")  # 0.1 Mbit/s, and ten times as much each 20 steps
        page.dispatch_event("#rate", "change")
        expect(page.locator("#links tr").first.locator(".rate")).to_have_text("100")
        now = labs.plan_now(lab.plan, lab.read_record())
        ways = now.directions(next(link for link in now.links if link.name == "ams-bra"))
        assert [(way.rate_mbit, way.queue_bytes) for way in ways] == [(100, 50_000)] * 2

        exact["loss"].fill("0.25")
        exact["loss"].press("Enter")
        expect(page.locator("#links tr").first.locator(".loss")).to_have_text("0.25")
        page.click("#declared")
        expect(exact["rate"]).to_have_value("10")
        expect(exact["loss"]).to_have_value("0")
        assert lab.read_record().changed == {}

        page.click("#links tr[data-link=lju-mil] >> nth=0")
        expect(page.locator("#chosen")).to_have_text("Link lju-mil")
        expect(exact["rate"]).to_have_attribute("placeholder", "none")
        expect(exact["queue"]).to_be_disabled()
        exact["rate"].fill("20")
        exact["rate"].press("Enter")
        expect(exact["queue"]).to_be_enabled()
        page.fill("#rate", "101")
        page.dispatch_event("#rate", "change")
        expect(exact["queue"]).to_be_disabled()


def test_why_a_request_was_refused_stays_until_the_next_one(
    brought_up: Callable[[str], Lab], opened: Callable[[str, int], Page], said: list[str], tmp_path: Path
) -> None:
    lab = brought_up(NETWORKS["pair"])
    with served(lab, tmp_path, said) as access:
        page = opened(access.url, 1280)
        page.evaluate("document.querySelector('#delay-exact').max = 1e9")
        page.fill("#delay-exact", "50000000")
        page.press("#delay-exact", "Enter")
        expect(page.locator("#problem")).to_contain_text("delay_ms")
        page.wait_for_timeout(500)
        expect(page.locator("#problem")).to_contain_text("delay_ms")
        expect(page.locator("#delay-exact")).to_have_value("8.85")
        page.click("#cut")
        expect(page.locator("#problem")).to_be_hidden()
        assert [each for each in said if "400" not in each] == []
        said.clear()

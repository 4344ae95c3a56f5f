"""Makes the README's two pictures again: the page of `minigts serve` at work, and a report.

    MINIGTS_MODULE=bench.pictures ./minigts test --results results/multihop-DATE

It takes the environment of tests, which has the browser's driver; the browser is Debian's chromium-headless-shell. A
chain of six comes up in virtual time and carries TCP from end to end; the report is the one of the results folder.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from bench import stage
from minigts import overlays
from minigts.cli import console
from minigts.errors import EnvironmentLacks
from minigts.lab import Lab
from minigts.session.bring_up import bare
from minigts.topology.read.load import load

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIGURES = stage.PROJECT / "docs" / "figures"
COLOURS = 64
"""A picture's palette: letters and lines lose nothing by it, and the file is a third."""
WIDTH = 1280


@contextmanager
def served(lab: Lab) -> Iterator[str]:
    """The address of the page of a lab, by the program itself."""
    argv = (sys.executable, "-P", "-m", "minigts", "serve", lab.name, "--every", "0.5")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield program.stdout.readline().strip()
        finally:
            program.send_signal(signal.SIGINT)


def write(shot: bytes, name: str) -> None:
    path = FIGURES / name
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    console.note(f"{path.relative_to(stage.PROJECT)}: {path.stat().st_size / 1000:.0f} kB")


def page_at_work(browser: Browser, url: str) -> bytes:
    """The page down to its terminals, while a stream of TCP crosses the chain and its round trips are measured. All
    of it is in view, since a terminal outside is not drawn."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 1500})
    page.set_default_timeout(300_000)
    page.goto(url)
    page.wait_for_selector("#links tr", state="attached")
    for host, typed in (("lon", "iperf3 -s -D"), ("ams", "clear; iperf3 -c lon -t 60 -i 2")):
        page.click(f"[data-host={host}]")
        page.wait_for_selector(".screen:visible .xterm-rows")
        page.keyboard.type(f"{typed}\n")
        page.wait_for_timeout(2000)
    page.select_option("#source", "ams")
    page.select_option("#target", "lon")
    page.select_option("#seconds", "30")
    page.click("#ping")
    page.wait_for_selector("#figures:has-text('100 answered')")
    page.evaluate("scrollTo(0, 0)")
    end = page.locator("#terminals").bounding_box()
    assert end is not None
    high = end["y"] + end["height"] + 10
    return page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": high})


def report_of(browser: Browser, results: Path) -> bytes:
    """Of a report, from the figure of TCP on."""
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.goto((results / "report.html").resolve().as_uri())
    begin = page.locator("h2:has-text('TCP by hops')").bounding_box()
    assert begin is not None
    return page.screenshot(full_page=True, clip={"x": 0, "y": begin["y"] - 20, "width": 900, "height": 1250})


def pictures(results: Path, topology: Path) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- only tests' environment has it

    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise EnvironmentLacks("there is no browser; apt-get install chromium-headless-shell")
    plan = load(topology, known_overlays=overlays.known_names(), time="virtual")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-dev-shm-usage"])
        write(report_of(browser, results), "report.png")
        with bare(plan, "uml", "chain-of-six", console.note) as lab, served(lab) as url:
            write(page_at_work(browser, url), "serve.png")
        browser.close()


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--results", type=Path, required=True, metavar="DIR", help="a results folder of multihop")
    made.add_argument("--topology", type=Path, default=stage.PROJECT / "topologies" / "chain6.yaml", metavar="FILE")
    given = made.parse_args([word for word in sys.argv[1:] if word != "test"])
    stage.perform(lambda: pictures(given.results, given.topology))


if __name__ == "__main__":
    main()

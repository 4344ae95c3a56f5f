"""A teacher's hour: the first lesson from start to a check that passes, with the lab's page open beside it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from live.pages import PATIENCE_MS, chromium, opened, slide
from live.program import Program

pytestmark = [pytest.mark.browser, pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(600)]

ENDED_S = 20.0


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "state")
    yield made
    made.run("down", "--all")


@pytest.fixture
def browser(browser_program: str) -> Iterator[Browser]:
    with chromium(browser_program) as started:
        yield started


@contextmanager
def served(program: Program, results: Path) -> Iterator[str]:
    """The address of the lab's page; it ends as by ctrl-C."""
    started = program.start("serve", "lesson-1", "--every", "0.2", "--results", str(results))
    assert started.stdout is not None
    try:
        yield started.stdout.readline().strip()
    finally:
        started.send_signal(signal.SIGINT)
        assert started.wait(ENDED_S) == 0


def lies_beside_the_network(page: Page) -> bool:
    network, lesson = (page.locator(name).bounding_box() for name in ("#network", "#lesson"))
    assert network is not None
    assert lesson is not None
    return lesson["x"] >= network["x"] + network["width"] and lesson["y"] == network["y"]


def test_a_student_predicts_measures_and_changes_the_lab_and_the_page_shows_it(
    program: Program, browser: Browser, tmp_path: Path
) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    folder, said = tmp_path / "class" / "ana", list[str]()
    here = ("--folder", str(folder))
    program.succeeds("lesson", "1", "start", *here)
    hidden = program.succeeds("up", str(folder / "topology.yaml"))
    assert "all within tolerance" in hidden
    assert "65.0" not in hidden
    assert program.run("explain", "ams-bra").returncode == 2

    with served(replace(program, directory=folder), tmp_path / "results") as url:
        page = opened(browser, url, said, 1280)
        expect(page.locator("#lesson-text h1")).to_have_text("Lesson 1: delay adds up")
        assert page.locator("#lesson-text li code").count() > 4
        assert lies_beside_the_network(page)

        expect(page.locator("[data-link=bra-lju] .first")).to_have_text(re.compile(r"^[\d.]+ ms one way$"))
        assert "predict first" in program.run("lesson", "1", "check", *here).stdout
        program.succeeds("lesson", "1", "predict", "32.5ms", *here)
        expect(page.locator("[data-link=bra-lju] .first")).to_have_text(re.compile(r"^[\d.]+ ms$"))
        assert "that is one way" in program.run("lesson", "1", "check", *here).stdout
        average = (
            program.succeeds("exec", "ams", "--", "ping", "-q", "-c", "3", "mil").rsplit(" = ", 1)[1].split("/")[1]
        )
        (folder / "answers.yaml").write_text(f"answers: {{to_mil: {average}ms, delay: 38ms}}\n")
        before = program.run("lesson", "1", "check", *here)
        assert (before.returncode, "as it was handed out; set it" in before.stdout) == (1, True)

        page.press("[data-link=bra-lju]", "Enter")
        slide(page, "#delay", "38")
        expect(page.locator("[data-link=bra-lju] .first")).to_have_text("76 ms")
        assert program.succeeds("lesson", "1", "check", *here).endswith("lesson 1: passed\n")
        assert "1 of 1 passed" in program.run("grade", "--again", str(tmp_path / "class")).stderr

        program.succeeds("kill", "lju")
        expect(page.locator("[data-machine=lju] .power")).to_have_text("off")
        expect(page.locator("[data-link=bra-lju] .first")).to_have_text("lju off")
        expect(page.locator("[data-host=lju]")).to_have_text("lju (off)")
        assert said == []

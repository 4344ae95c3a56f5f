"""The results folder of a suite's run, which is written as tests end.

    suite.json            what is run: settings, tests, times
    results.jsonl         a line for each case and time that has ended; one that a crash has cut short is ignored
    output/TEST/          what cases have printed: CASE-1.txt the first time, and CASE-3.txt where the third differs;
                          CASE-1.pcap where frames were captured
    table.md              the results for people; junit.xml for programs

What a test has printed is written before its lines. So a case counts as done only when all of it is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.foreign import Foreign, file_name
from minigts.language import documents
from minigts.results import store
from minigts.results.folder import append, inside, read_bytes, read_model, read_text, write
from minigts.suites.outcome import CaseOutcome
from minigts.suites.performance import CaseReport
from minigts.suites.work import SuiteRun

RUN, RESULTS, OUTPUT, TABLE, JUNIT = "suite.json", "results.jsonl", "output", "table.md", "junit.xml"
ONLY_CASE = "output"
"""The name of a case that has none, for files."""


def create(results: Path, run: SuiteRun, now: datetime) -> Path:
    """A new folder below `results`. Raises MinigtsError when it cannot be written."""
    folder = store.create(results, f"suite-{run.settings.suite}", now)
    write(inside(folder, RUN), run.model_dump_json(indent=1) + "\n")
    return folder


def read(folder: Path) -> SuiteRun:
    """What is run there. Raises InputError for another folder."""
    path = inside(folder, RUN)
    if not path.is_file():
        raise InputError([Problem(str(folder), 0, f"is no folder of `minigts suite run`: it has no {RUN}")])
    return read_model(path, SuiteRun)


def keep(folder: Path, test: Sequence[CaseReport]) -> None:
    """Write what came of a test. Raises MinigtsError when the disk is full or refuses."""
    for each in test:
        first = _output(folder, each.outcome, 1)
        if each.outcome.time == 1 or not first.is_file() or read_text(first) != each.output:
            write(_output(folder, each.outcome, each.outcome.time), each.output)
        if each.capture:
            write(_output(folder, each.outcome, each.outcome.time).with_suffix(".pcap"), each.capture)
    append(inside(folder, RESULTS), "".join(each.outcome.model_dump_json() + "\n" for each in test))


def output(folder: Path, outcome: CaseOutcome) -> str:
    """What a case has printed; empty if that was not kept."""
    for time in (outcome.time, 1):
        path = _output(folder, outcome, time)
        if path.is_file():
            return read_text(path)
    return ""


def _output(folder: Path, outcome: CaseOutcome, time: int) -> Path:
    test, case = file_name(Foreign(outcome.test)), file_name(Foreign(outcome.case or ONLY_CASE))
    return inside(folder, OUTPUT, test, f"{case}-{time}.txt")


def outcomes(folder: Path) -> list[CaseOutcome]:
    """Every case and time that has ended; the last outcome of one that was run again."""
    path = inside(folder, RESULTS)
    found: dict[tuple[str, str, int], CaseOutcome] = {}
    for line in read_bytes(path).splitlines() if path.exists() else []:
        with suppress(ValueError):
            each = documents.model(line, CaseOutcome)
            found[each.test, each.case, each.time] = each
    return list(found.values())

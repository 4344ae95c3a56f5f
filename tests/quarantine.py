"""Tests that are known to fail now and then, and why: those that `quarantined` beside this file names.

A test is tried once. One that is named runs as the others do; where it fails, that is shown and fails nobody else. A
line is a date, the test as pytest names it, and the reason; it holds for so many days, after which it fails the run, as
does one that names a test that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from minigts.errors import InputError, Problem

FILE = Path(__file__).with_name("quarantined")
HOLDS = timedelta(days=30)


@dataclass(frozen=True)
class Entry:
    since: date
    test: str
    reason: str
    line: int


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    try:
        entries = read(FILE.read_text(encoding="utf-8"), date.today())
        named = {entry.test: entry for entry in entries}
        chosen = any("::" in argument for argument in config.invocation_params.args)
        for entry in () if chosen else unknown(entries, [item.nodeid for item in items]):
            raise InputError([Problem(FILE.name, entry.line, f"there is no test {entry.test}")])
    except InputError as error:
        raise pytest.UsageError(str(error)) from error
    for item in items:
        if item.nodeid in named:
            entry = named[item.nodeid]
            item.add_marker(pytest.mark.xfail(reason=f"since {entry.since}: {entry.reason}", strict=False))


def read(text: str, today: date) -> list[Entry]:
    """`2026-11-26 tests/unit/test_x.py::test_y it waits for a clock that may be late`

    Raises InputError with every line that is none, or has held for too long.
    """
    entries, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            entry = _entry(line, number)
            if entry is None:
                wrong = "a line is a date, a test and the reason, as in 2026-11-26 tests/unit/test_x.py::test_y why"
            elif entry.since > today or today - entry.since > HOLDS:
                wrong = f"{entry.since} is not within the last {HOLDS.days} days: {entry.test} is to be mended"
            else:
                entries.append(entry)
                continue
            problems.append(Problem(FILE.name, number, wrong))
    if problems:
        raise InputError(problems)
    return entries


def unknown(entries: Sequence[Entry], tests: Sequence[str]) -> Iterator[Entry]:
    """Those whose file is among the tests', and they are not."""
    files = {test.partition("::")[0] for test in tests}
    for entry in entries:
        if entry.test not in tests and entry.test.partition("::")[0] in files:
            yield entry


def _entry(line: str, number: int) -> Entry | None:
    words = line.split(maxsplit=2)
    try:
        return Entry(date.fromisoformat(words[0]), words[1], words[2], number) if "::" in words[1] else None
    except (ValueError, IndexError):
        return None

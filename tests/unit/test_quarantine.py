"""A test is tried once; one that may fail for now is named, with a date and the reason."""

from __future__ import annotations

from datetime import date

import pytest

import quarantine
from minigts.errors import InputError

TODAY = date(2026, 11, 26)
LINE = "2026-11-26 tests/unit/test_x.py::test_y[a-b] it waits for a clock"


def test_a_line_is_a_date_a_test_and_the_reason() -> None:
    (entry,) = quarantine.read(f"# all of them\n\n{LINE}\n", TODAY)
    assert (entry.since, entry.test) == (TODAY, "tests/unit/test_x.py::test_y[a-b]")
    assert (entry.reason, entry.line) == ("it waits for a clock", 3)


@pytest.mark.parametrize(
    "line",
    [
        "tests/unit/test_x.py::test_y why",
        "2026-11-26 tests/unit/test_x.py::test_y",
        "2026-11-26 test_y why",
        "26.11. a::b c",
    ],
)
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(InputError, match=r"^quarantined:2: a line is a date, a test and the reason, as in "):
        quarantine.read(f"{LINE}\n{line}\n", TODAY)


@pytest.mark.parametrize(
    ("since", "holds"), [("2026-10-27", True), ("2026-10-26", False), ("2026-11-26", True), ("2026-11-27", False)]
)
def test_it_holds_for_thirty_days(since: str, holds: bool) -> None:
    text = LINE.replace("2026-11-26", since)
    if holds:
        assert len(quarantine.read(text, TODAY)) == 1
        return
    with pytest.raises(InputError, match=f"{since} is not within the last 30 days: tests/unit/test_x.py::test_y"):
        quarantine.read(text, TODAY)


def test_a_test_that_has_gone_is_named_where_its_file_is_run() -> None:
    entries = quarantine.read(LINE, TODAY)
    assert [*quarantine.unknown(entries, ["tests/unit/test_x.py::test_z"])] == entries
    assert [*quarantine.unknown(entries, ["tests/unit/test_x.py::test_y[a-b]"])] == []
    assert [*quarantine.unknown(entries, ["tests/unit/test_w.py::test_y[a-b]"])] == []


def test_the_projects_own_list_can_be_read() -> None:
    quarantine.read(quarantine.FILE.read_text(), date.today())

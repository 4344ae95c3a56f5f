"""samples.csv, read as a stream: counts, and the measured numbers of each cell.

A campaign of 100 000 samples stays small: a number takes eight bytes, and text is kept once.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from minigts.errors import InputError, Problem

PLACE = ("overlay", "measurement", "source", "target", "kind")
NEITHER = frozenset(
    {*PLACE, "sample", "tool", "hops", "repetition", "value", "unit", "predicted", "started", "attempts", "ok"}
    | {"error", "tainted", "repeats", "foreign_cores", "waited_cores", "steal_cores", "lag_ms", "note"}
)
"""Columns that are no further measured quantity. `seconds` is one: how long the sample took."""
FALSE = frozenset({"0", "false", "no"})
ERRORS_KEPT = 20
_FIGURE = re.compile(r"\d+(\.\d+)?")

Settings = tuple[tuple[str, str], ...]
"""The varied settings of a cell with their values as written, in the order of the experiment's file."""
Key = tuple[str, ...]


class NothingYet(InputError):
    """A run that has no samples so far."""


@dataclass
class Cell:
    """The samples that differ in nothing but their repetition: the columns of good ones, and of those that were taken
    while the machine was starved."""

    good: dict[str, array[float]] = field(default_factory=dict)
    disturbed: dict[str, array[float]] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, array[float]]:
        """What counts: disturbed samples only where there are no others."""
        return self.good or self.disturbed

    @property
    def excluded(self) -> Sequence[float]:
        """The values that do not count."""
        return self.disturbed.get("value", ()) if self.good else ()


@dataclass
class Samples:
    """What samples.csv holds: a row is a sample's last attempt.

    `repeated` are good ones that failed at first; `retaken` counts attempts that were thrown away because the
    machine was starved meanwhile, `tainted` the samples that were still taken so at the last attempt. `errors`,
    `taints` and `notes` are the first distinct ones, with how often each came.
    """

    total: int = 0
    failed: int = 0
    repeated: int = 0
    retaken: int = 0
    tainted: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    taints: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    cells: dict[Key, Cell] = field(default_factory=dict)


def read(path: Path, settings: Sequence[str]) -> Samples:
    """The samples in `path`; `settings` are the columns of what was varied. Raises InputError for a broken file."""
    found = Samples()
    if path.exists():
        rows = table(path, ("sample", "ok", "error"))
        columns = _Columns(next(rows)[1], settings)
        for line, row in rows:
            found.total += 1
            _take(found, columns, row, f"{path}:{line}")
    if not found.total:
        raise NothingYet(f"{path.parent}: holds no samples yet; `minigts run` writes them to samples.csv")
    return found


def table(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The header and the rows of a CSV file, with line numbers.

    Raises InputError on rubbish, a missing column, or a row of another length than the header.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            lacking = [name for name in needed if name not in header]
            if lacking:
                raise InputError([Problem(str(path), 1, f"no column {', '.join(lacking)}")])
            yield 1, header
            for row in reader:
                if row and len(row) != len(header):
                    raise InputError([Problem(str(path), reader.line_num, "more or fewer fields than the header")])
                if row:
                    yield reader.line_num, row
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error}")]) from error


def key_of(row: Mapping[str, str], settings: Sequence[str]) -> Key:
    """What tells a cell from others: its place, and each setting's value, empty where it is not varied."""
    return tuple(row.get(name, "") for name in (*PLACE, *settings))


class _Columns:
    """Where in a row what stands, found out once."""

    def __init__(self, header: Sequence[str], settings: Sequence[str]) -> None:
        at = {name: index for index, name in enumerate(header)}
        self.ok, self.error = at["ok"], at["error"]
        self.value, self.attempts = at.get("value"), at.get("attempts")
        self.taint, self.repeats, self.note = at.get("tainted"), at.get("repeats"), at.get("note")
        self.key = tuple(at.get(name) for name in (*PLACE, *settings))
        self.numbers = tuple((name, index) for name, index in at.items() if name not in NEITHER | set(settings))


def _take(found: Samples, columns: _Columns, row: Sequence[str], where: str) -> None:
    """Count one row and keep its numbers. A failed sample has none; a tainted one is kept apart."""
    if row[columns.ok].strip().lower() in FALSE:
        found.failed += 1
        _note(found.errors, row[columns.error])
        return
    retaken, attempts = (_count(row, index) for index in (columns.repeats, columns.attempts))
    found.retaken += retaken
    found.repeated += attempts > 1 + retaken
    key = tuple("" if index is None else row[index] for index in columns.key)
    cell = found.cells.get(key)
    if cell is None:
        cell = found.cells[key] = Cell()
    taint = "" if columns.taint is None else row[columns.taint].strip()
    if taint:
        found.tainted += 1
        for reason in taint.split("; "):
            _note(found.taints, _FIGURE.sub("…", reason))
    if columns.note is not None and row[columns.note]:
        _note(found.notes, row[columns.note])
    numbers = cell.disturbed if taint else cell.good
    for name, index in (("value", columns.value), *columns.numbers):
        if index is not None and row[index]:
            _keep(numbers.setdefault(name, array("d")), row[index], name, where)


def _keep(numbers: array[float], text: str, name: str, where: str) -> None:
    """A column unknown here may hold words, which are no quantity; a value may not."""
    try:
        numbers.append(float(text))
    except ValueError:
        if name == "value":
            raise InputError(f"{where}: value: {text[:60]!r} is not a number") from None


def _count(row: Sequence[str], index: int | None) -> int:
    return int(row[index]) if index is not None and row[index].isdecimal() else 0


def _note(seen: Counter[str], message: str) -> None:
    if message in seen or len(seen) < ERRORS_KEPT:
        seen[message] += 1

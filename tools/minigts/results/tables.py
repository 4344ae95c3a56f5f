"""Writes and reads samples.csv, summary.csv and series.csv of a results folder.

samples.csv is read as a stream into counts, and the measured numbers of each cell. Even a million samples need little
memory: a number takes eight bytes, text is kept once, and only a block of the file is in memory.
"""

from __future__ import annotations

import csv
import io
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from pathlib import Path
from statistics import median

from minigts.errors import InputError, Problem
from minigts.language.spreadsheets import no_formula
from minigts.results.folder import LARGEST_BYTES, LARGEST_NUMBER, finite, inside, plain, read_blocks
from minigts.results.schema import SAMPLES, SERIES, SUMMARY
from minigts.tools import COLUMNS, TOOLS
from minigts.tools.base import Tool
from minigts.tools.columns import BESIDE

PLACE = ("overlay", "measurement", "source", "target", "kind")
SAMPLE_COLUMNS = (
    *("sample", "overlay", "measurement", "tool", "source", "target", "hops", "kind", "repetition", "value", "unit"),
    *("predicted", *COLUMNS, "started", "seconds", "attempts", "ok", "error", "note", "tainted", "repeats"),
    *("foreign_cores", "waited_cores", "steal_cores", "lag_ms"),
)
SUMMARY_COLUMNS = (
    *("overlay", "measurement", "source", "target", "hops", "kind", "n", "mean", "stdev", "median", "low", "high"),
    *("unit", "predicted", "published", "tainted"),
)
SERIES_COLUMNS = ("sample", "overlay", "measurement", "source", "target", "repetition", "column", "at_s", "value")
FLOW_COLUMNS = (
    *("sample", "overlay", "measurement", "repetition", "flow", "number", "tool", "source", "target", "start_s"),
    *("value", "unit", "rate_mbit", "share_percent", "idle_ms", "queueing_ms"),
    *(column.name for column in COLUMNS.values() if column not in BESIDE),
)
"""The columns of flows.csv: a row for each flow of a good sample."""
REPLICATE = "replicate"
"""The column after `repetition` in samples.csv, series.csv and flows.csv of a run with replicates."""
SAMPLES_NEED = ("sample", "ok", "error")
SUMMARY_NEEDS = tuple(name for name in SUMMARY_COLUMNS if name not in ("predicted", "published", "tainted"))
NO_QUANTITY = (frozenset(SAMPLE_COLUMNS) | {REPLICATE}) - frozenset(COLUMNS) - {"seconds"}
"""The columns that are no measured quantity. `seconds`, how long the sample took, is one and is not among them."""
FALSE = frozenset({"0", "false", "no"})
ERRORS_KEPT = 20
MOST_ROWS = 200_000
MOST_SAMPLES, LARGEST_SAMPLES_BYTES = 1_000_000, 1_000_000_000
"""The limits of samples.csv, which is not kept in memory as the other tables are."""
LONGEST_CELL = 200
"""The longest name of a network, host, measurement or setting, in characters."""
MOST_HOPS = 1000
_FIGURE = re.compile(r"\d+(\.\d+)?")

Settings = tuple[tuple[str, str], ...]
"""The varied settings of a cell with their values as written, in the order of the experiment's file."""
Key = tuple[str, ...]


class NothingYet(InputError):
    """The run has no samples yet."""


@dataclass
class Numbers:
    """The numbers of a cell's samples, by column: of good samples, and of those taken while the machine was starved."""

    good: dict[str, array[float]] = field(default_factory=dict)
    disturbed: dict[str, array[float]] = field(default_factory=dict)
    replicates: dict[str, array[int]] = field(default_factory=dict)
    """Of each good number its replicate; empty where a run has none."""

    @property
    def columns(self) -> dict[str, array[float]]:
        """The numbers that count: disturbed samples count only where there are no others."""
        return self.good or self.disturbed

    def note_replicate(self, column: str, replicate: int | None, *, disturbed: bool) -> None:
        """Note the replicate of a column's latest number; None where a run has none."""
        if replicate is not None and not disturbed:
            self.replicates.setdefault(column, array("l")).append(replicate)

    def course_medians(self, column: str) -> Sequence[float]:
        """The median of each course of events: in virtual time the numbers that are independent of each other."""
        numbers = self.columns.get(column, ())
        courses: dict[int, list[float]] = {}
        for index, number in enumerate(numbers):
            replicate = self.replicates[column][index] if self.good and column in self.replicates else 0
            courses.setdefault(replicate, []).append(number)
        return [median(own) for own in courses.values()]

    @property
    def excluded(self) -> Sequence[float]:
        """The values that do not count."""
        return self.disturbed.get("value", ()) if self.good else ()


@dataclass
class Samples:
    """The content of samples.csv, in which a row is a sample's last attempt.

    `repeated` counts good samples that failed at first; `retaken` the attempts that were thrown away because the
    machine was starved, and `tainted` the samples whose last attempt was so, too. `errors`, `taints` and `notes` are
    the first distinct ones, with their numbers.
    """

    total: int = 0
    failed: int = 0
    repeated: int = 0
    retaken: int = 0
    tainted: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    taints: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    cells: dict[Key, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class SummaryRow:
    """One line of summary.csv: all samples of one measurement between two hosts over one overlay.

    `measurement` is its name in the experiment; `tool` is the tool that measured it, or one that measures the same
    where the folder does not say. `low` and `high` end the 95 % interval of the median; they and `stdev` are None for a
    single sample.
    """

    overlay: str
    measurement: str
    tool: Tool
    source: str
    target: str
    hops: int
    kind: str
    n: int
    mean: float
    stdev: float | None
    median: float
    low: float | None
    high: float | None
    unit: str
    predicted: float | None
    published: float | None
    tainted: int = 0
    settings: Settings = ()
    cell: Numbers = field(default_factory=Numbers, compare=False, repr=False)

    @property
    def doubtful(self) -> bool:
        """Whether every sample was taken while the machine was starved."""
        return self.tainted > 0 and not self.cell.good

    @property
    def below(self) -> float:
        """How far the interval reaches below the median; 0 without an interval."""
        return 0.0 if self.low is None else self.median - self.low

    @property
    def above(self) -> float:
        return 0.0 if self.high is None else self.high - self.median


def replicate_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table, with one for the replicate."""
    behind = columns.index("repetition") + 1
    return (*columns[:behind], REPLICATE, *columns[behind:])


def number(value: float | None) -> str:
    """A number as written in the tables; empty for None."""
    return "" if value is None else f"{value:.9g}"


def text(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """A table in the format of RFC 4180, but with a line feed at each line's end."""
    made = io.StringIO()
    writer = csv.DictWriter(made, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: no_formula(plain(value), numbers=True) for name, value in row.items()} for row in rows)
    return made.getvalue()


def rows(
    path: Path, needed: Sequence[str], most: int = MOST_ROWS, most_bytes: int = LARGEST_BYTES
) -> Iterator[tuple[int, list[str]]]:
    """The header and the rows of a CSV file, with line numbers. Characters that would change a terminal are replaced.

    Raises InputError for invalid CSV, a missing or repeated column, more than `most` rows, or a row with another number
    of fields than the header.
    """
    reader = csv.reader(_lines(path, most_bytes), strict=True)
    count = 0
    try:
        header = next(reader, [])
        lacking = [name for name in needed if name not in header]
        if lacking:
            raise InputError([Problem(str(path), 1, f"no column {', '.join(lacking)}")])
        if twice := [name for name in dict.fromkeys(header) if header.count(name) > 1]:
            raise InputError([Problem(str(path), 1, f"column {twice[0][:40]!r} appears twice")])
        yield 1, header
        for row in reader:
            count += 1
            if count > most:
                raise InputError([Problem(str(path), reader.line_num, f"more than {most} rows")])
            if not row:
                continue
            if len(row) != len(header):
                raise InputError([Problem(str(path), reader.line_num, "more or fewer fields than the header")])
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError([Problem(str(path), reader.line_num, f"cannot be read: {error}")]) from error


def _lines(path: Path, most_bytes: int) -> Iterator[str]:
    """The lines of a text file, each ended by a line feed, without characters that would change a terminal."""
    for block in read_blocks(path, most_bytes):
        ended = block if block.endswith(("\n", "\r")) else f"{block}\n"
        yield from io.StringIO(plain(ended.replace("\r\n", "\n").replace("\r", "\n")))


def lab_columns(values: Mapping[str, str]) -> dict[str, str]:
    """The columns, with their cells, that the tables of one lab of a sweep have for its values, by their places in the
    topology file. A place with the name of an ordinary column has none."""
    taken = {*SAMPLE_COLUMNS, *SUMMARY_COLUMNS, *SERIES_COLUMNS, REPLICATE}
    return {place: value for place, value in values.items() if place not in taken}


def read_samples(directory: Path, settings: Sequence[str], of_lab: Collection[str] = ()) -> Samples:
    """The samples in the folder; `settings` are the columns of what varies between them, `of_lab` those of the lab's
    values. Raises InputError for a broken file, NothingYet without samples."""
    path = inside(directory, SAMPLES)
    found = Samples()
    if os.path.lexists(path):
        lines = rows(path, SAMPLES_NEED, MOST_SAMPLES, LARGEST_SAMPLES_BYTES)
        columns = _Columns(next(lines)[1], settings, of_lab)
        for line, row in lines:
            found.total += 1
            _take(found, columns, row, path, line)
    if not found.total:
        raise NothingYet(f"{directory}: holds no samples yet; `minigts run` writes them to {SAMPLES}")
    return found


class _Columns:
    """The positions of the columns in a row."""

    def __init__(self, header: Sequence[str], settings: Sequence[str], of_lab: Collection[str]) -> None:
        at = {name: index for index, name in enumerate(header)}
        self.ok, self.error = at["ok"], at["error"]
        self.attempts, self.repeats = at.get("attempts"), at.get("repeats")
        self.taint, self.note = at.get("tainted"), at.get("note")
        self._replicate = at.get(REPLICATE)
        key = [at.get(name) for name in (*PLACE, *settings)]
        # A million rows are read, so the cells of a row are picked in one call.
        self.key = _picked(key)
        value = [("value", at["value"])] if "value" in at else []
        no_quantity = NO_QUANTITY | {*settings, *of_lab}
        further = [(name, index) for name, index in at.items() if name not in no_quantity]
        self.names = [name for name, _ in (*value, *further)]
        self.numbers = _picked([index for _, index in (*value, *further)])

    def replicate_of(self, row: Sequence[str]) -> int | None:
        """The row's replicate; None where the table has no such column."""
        return None if self._replicate is None else _count(row[self._replicate])


def _picked(at: Sequence[int | None]) -> Callable[[Sequence[str]], Key]:
    """A function that picks these cells of a row; a missing column is empty."""
    there = [index for index in at if index is not None]
    if len(there) == len(at) > 1:
        return itemgetter(*there)
    return lambda row: tuple("" if index is None else row[index] for index in at)


def _take(found: Samples, columns: _Columns, row: Sequence[str], path: Path, line: int) -> None:
    """Count one row and keep its numbers. A failed sample has none; those of a tainted one are kept apart."""
    if _is_false(row[columns.ok]):
        found.failed += 1
        _note(found.errors, row[columns.error])
        return
    retaken = 0 if columns.repeats is None else _count(row[columns.repeats])
    attempts = 0 if columns.attempts is None else _count(row[columns.attempts])
    found.retaken += retaken
    found.repeated += attempts > 1 + retaken
    key = columns.key(row)
    cell = found.cells.get(key)
    if cell is None:
        cell = found.cells[key] = Numbers()
    taint = "" if columns.taint is None else row[columns.taint].strip()
    if taint:
        found.tainted += 1
        for reason in taint.split("; "):
            _note(found.taints, _FIGURE.sub("…", reason))
    if columns.note is not None and row[columns.note]:
        _note(found.notes, row[columns.note])
    numbers = cell.disturbed if taint else cell.good
    cells = columns.numbers(row)
    for name, said in zip(compress(columns.names, cells), filter(None, cells), strict=True):
        if name not in numbers:
            numbers[name] = array("d")
        try:
            numbers[name].append(finite(said))
            cell.note_replicate(name, columns.replicate_of(row), disturbed=bool(taint))
        except ValueError:
            # An unknown column may have words; a value or a known column may not.
            if name == "value" or name in COLUMNS:
                raise InputError([Problem(str(path), line, f"{name}: {said[:60]!r} is {_NO_NUMBER}")]) from None


_NO_NUMBER = f"not a number; from {-LARGEST_NUMBER:g} to {LARGEST_NUMBER:g} are possible"


@lru_cache
def _is_false(said: str) -> bool:
    return said.strip().lower() in FALSE


@lru_cache
def _count(said: str) -> int:
    return int(said) if re.fullmatch(r"\d{1,6}", said, re.ASCII) else 0


def _note(seen: Counter[str], message: str) -> None:
    short = message if len(message) <= 2000 else f"{message[:2000]}…"
    if short in seen or len(seen) < ERRORS_KEPT:
        seen[short] += 1


def read_summary(
    directory: Path, tools: Mapping[str, Tool], settings: Sequence[str], samples: Samples
) -> tuple[SummaryRow, ...]:
    """The rows of summary.csv, each with its samples' numbers; none when there is no such file.

    `tools` are the measurements' tools by their names. Raises InputError.
    """
    path = inside(directory, SUMMARY)
    if not os.path.lexists(path):
        return ()
    lines = rows(path, SUMMARY_NEEDS)
    header = next(lines)[1]
    named = [name for name in settings if name not in SUMMARY_COLUMNS]
    read = (_Row(path, line, dict(zip(header, row, strict=True))) for line, row in lines)
    return tuple(row.typed(tools, named, settings, samples) for row in read)


@dataclass(frozen=True)
class SeriesRow:
    """One line of series.csv: what a column of samples.csv was at one moment of a sample, `at_s` after its start."""

    overlay: str
    measurement: str
    source: str
    target: str
    settings: Settings
    column: str
    at_s: float
    value: float
    sample: str = ""


def read_series(directory: Path, settings: Sequence[str]) -> tuple[SeriesRow, ...]:
    """The rows of series.csv; none when there is no such file. Raises InputError."""
    path = inside(directory, SERIES)
    if not os.path.lexists(path):
        return ()
    lines = rows(path, SERIES_COLUMNS)
    header = next(lines)[1]
    named = [name for name in settings if name not in SERIES_COLUMNS]
    return tuple(_Row(path, line, dict(zip(header, row, strict=True))).moment(named) for line, row in lines)


@dataclass(frozen=True)
class _Row:
    """A line of summary.csv or of series.csv. Raises InputError, with line and column, for missing or wrong cells."""

    path: Path
    line: int
    cells: Mapping[str, str]

    def typed(
        self, tools: Mapping[str, Tool], named: Sequence[str], varied: Sequence[str], samples: Samples
    ) -> SummaryRow:
        n = self._whole("n", least=1)
        return SummaryRow(
            overlay=self._word("overlay"),
            measurement=self._word("measurement"),
            tool=self._tool(tools),
            source=self._word("source"),
            target=self._word("target"),
            hops=self._whole("hops", most=MOST_HOPS),
            kind=self._word("kind"),
            n=n,
            mean=self._number("mean"),
            stdev=self._optional("stdev") if n > 1 else None,
            median=self._number("median"),
            low=self._optional("low") if n > 1 else None,
            high=self._optional("high") if n > 1 else None,
            unit=self._word("unit"),
            predicted=self._optional("predicted"),
            published=self._optional("published"),
            tainted=self._whole("tainted") if self.cells.get("tainted", "").strip() else 0,
            settings=tuple((name, self._word(name)) for name in named if self.cells.get(name)),
            cell=samples.cells.get(tuple(self.cells.get(name, "") for name in (*PLACE, *varied)), Numbers()),
        )

    def moment(self, named: Sequence[str]) -> SeriesRow:
        return SeriesRow(
            overlay=self._word("overlay"),
            measurement=self._word("measurement"),
            source=self._word("source"),
            target=self._word("target"),
            settings=tuple((name, self._word(name)) for name in named if self.cells.get(name)),
            column=self._word("column"),
            at_s=self._number("at_s"),
            value=self._number("value"),
            sample=self._word("sample"),
        )

    def _wrong(self, column: str, what: str) -> InputError:
        return InputError([Problem(str(self.path), self.line, f"{column}: {self.cells[column][:60]!r} is {what}")])

    def _word(self, column: str) -> str:
        if len(self.cells[column]) > LONGEST_CELL:
            raise self._wrong(column, f"longer than {LONGEST_CELL} characters")
        return self.cells[column]

    def _number(self, column: str) -> float:
        try:
            return finite(self.cells[column])
        except ValueError:
            raise self._wrong(column, _NO_NUMBER) from None

    def _whole(self, column: str, least: int = 0, most: int = 10**9) -> int:
        value = self._number(column)
        if value != int(value) or not least <= value <= most:
            raise self._wrong(column, f"not a whole number from {least} to {most}")
        return int(value)

    def _optional(self, column: str) -> float | None:
        return self._number(column) if self.cells.get(column, "").strip() else None

    def _tool(self, tools: Mapping[str, Tool]) -> Tool:
        """The tool that measured the row; where it is unknown, a tool with the same unit, chosen by the row's name."""
        name, unit = self.cells["measurement"], self.cells["unit"]
        known = tools.get(name)
        if known and known.unit == unit:
            return known
        alike = [tool for tool in TOOLS.values() if tool.unit == unit]
        alike = alike or [tool for tool in TOOLS.values() if tool.quantity == "throughput"]
        words = (known.name if known else name).casefold()
        return next((tool for tool in reversed(alike) if tool.usual_name in words), alike[0])

"""Result tables as text: columns and rows, ready for a page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from minigts.report import phrasing
from minigts.report.derive import LatencyPoint
from minigts.results.tables import SummaryRow
from minigts.tools import COLUMNS

MANY_ROWS = 60
"""A longer table is folded up."""
FURTHER = frozenset(name for name, column in COLUMNS.items() if column.tabled)
"""Columns of samples.csv whose medians a table has too."""


@dataclass(frozen=True)
class Table:
    """`columns` whose heading starts with `>` hold numbers. A row may be `strong`: it sums up those beneath it."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[int] = frozenset()

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        return tuple(column.startswith(">") for column in self.columns)

    @property
    def folded(self) -> bool:
        return len(self.rows) > MANY_ROWS


def results(summary: Sequence[SummaryRow], points: Sequence[LatencyPoint]) -> list[Table]:
    """One table for each measurement over paths, and one for its single segments, in the order of the summary;
    measurements of a single row share one."""
    sums = {(point.measurement, point.overlay, point.source, point.target): point for point in points}
    sizes = Counter((row.measurement, row.kind) for row in summary)
    groups: dict[tuple[str, str, str], list[SummaryRow]] = {}
    for row in summary:
        name = row.measurement if sizes[row.measurement, row.kind] > 1 else ""
        groups.setdefault((name, row.kind, row.unit), []).append(row)
    made = []
    for (_, kind, _), rows in groups.items():
        keys = [(row.measurement, row.overlay, row.source, row.target) for row in rows]
        made.append(_table(rows, [sums.get(key) if kind == "path" else None for key in keys]))
    return made


def number(value: float | None, digits: int, *, sign: bool = False) -> str:
    """With a true minus; nothing for None."""
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def _table(rows: Sequence[SummaryRow], points: Sequence[LatencyPoint | None]) -> Table:
    single = " over single segments" if rows[0].kind == "segment" else ""
    columns = [column for column in _columns(rows, points) if any(column[1])]
    return Table(
        heading=f"{_one_name(rows)}{single}, in {rows[0].unit}{_everywhere(rows)}",
        columns=tuple(heading for heading, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
    )


def _one_name(rows: Sequence[SummaryRow]) -> str:
    """The measurement's name, or what several of them measure."""
    several = len({row.measurement for row in rows}) > 1
    return rows[0].tool.value.label if several else phrasing.measurement(rows[0].measurement)


def _everywhere(rows: Sequence[SummaryRow]) -> str:
    """The path, where it is the only one."""
    return f", {rows[0].source} → {rows[0].target}" if _one_path(rows) else ""


def _one_path(rows: Sequence[SummaryRow]) -> bool:
    return len({(row.source, row.target) for row in rows}) == 1


def _columns(
    rows: Sequence[SummaryRow], points: Sequence[LatencyPoint | None]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Heading and cells of each column that the table could have; an empty one is left out."""
    digits = 3 if rows[0].unit == "ms" else 2
    residuals = any(point and point.residual_ms is not None for point in points)

    def numbers(values: Sequence[float | None], *, sign: bool = False) -> tuple[str, ...]:
        return tuple(number(value, digits, sign=sign) for value in values)

    if len({row.measurement for row in rows}) > 1:
        yield "measurement", tuple(row.measurement for row in rows)
    yield "network", tuple(phrasing.label(row.overlay) for row in rows)
    if not _one_path(rows):
        yield "from → to", tuple(f"{row.source} → {row.target}" for row in rows)
        yield ">hops", tuple(str(row.hops) for row in rows) if any(row.hops > 1 for row in rows) else ()
    for name in dict.fromkeys(name for row in rows for name, _ in row.settings):
        yield f">{phrasing.axis(name)}", tuple(dict(row.settings).get(name, "") for row in rows)
    yield ">n", tuple(str(row.n) for row in rows)
    yield ">median", numbers([row.median for row in rows])
    yield ">low", numbers([row.low for row in rows])
    yield ">high", numbers([row.high for row in rows])
    yield ">mean", numbers([row.mean for row in rows])
    yield ">sd", numbers([row.stdev for row in rows])
    if residuals:
        yield ">sum of segments", numbers([point.sum_ms if point else None for point in points])
        yield ">residual", numbers([point.residual_ms if point else None for point in points], sign=True)
    yield f">{rows[0].tool.prediction.heading}", numbers([row.predicted for row in rows])
    yield ">published", numbers([row.published for row in rows])
    for name in dict.fromkeys(name for row in rows for name in row.cell.columns if name in FURTHER):
        medians = [median(row.cell.columns[name]) if row.cell.columns.get(name) else None for row in rows]
        own_digits = digits if COLUMNS[name].unit is None else 2
        yield f">{phrasing.column(name, rows[0].unit)}", tuple(number(value, own_digits) for value in medians)

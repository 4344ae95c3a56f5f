"""Distributions: the share of samples, or of a tool's moments, that do not exceed each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from minigts.experiment_language.figures import Figure as Asked
from minigts.report import phrasing, style
from minigts.report.axis_places import path, value_label, variant
from minigts.report.chart_model import Chart, Panel, Point, Series
from minigts.report.read import ReportResults
from minigts.results.tables import SummaryRow
from minigts.tools.columns import VALUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STEPS = 2000
"""The most steps of a line; more could not be distinguished."""


def chart(results: ReportResults, asked: Asked, rows: Sequence[SummaryRow]) -> Chart:
    """The distributions that a figure asks for: a panel for each column, a series for each row. Pure."""
    several = len({path(row) for row in rows}) > 1
    columns = asked.y or (VALUE,)
    panels = []
    for column in columns:
        series = []
        for row in rows:
            if values := list(_values(results, row, column, of_moments=asked.cdf == "moments")):
                way = asked.word_name(path(row)) if several else ""
                series.append(Series(row.overlay, variant(row, asked), _steps(values, path(row)), way))
        lines = tuple(line for line in asked.lines if (line.y or columns[0]) == column)
        panels.append(Panel(column, value_label(rows[0], column), tuple(series), lines))
    title = asked.title or f"{phrasing.measurement(rows[0].measurement)}: distribution of {asked.cdf}"
    return Chart(
        name=asked.name or f"{asked.measurements[0]}-cdf",
        title=title,
        measurements=asked.measurements,
        tool=rows[0].tool,
        x=VALUE,
        x_label=panels[0].label,
        ticks=(),
        bars=False,
        panels=tuple(panels),
        by_column=True,
        asked=asked,
    )


def _values(results: ReportResults, row: SummaryRow, column: str, *, of_moments: bool) -> Iterator[float]:
    if not of_moments:
        yield from row.cell.columns.get(column, ())
        return
    own = dict(row.settings).items()
    for moment in results.series:
        of_row = (moment.overlay, moment.measurement, path(moment)) == (row.overlay, row.measurement, path(row))
        if moment.column == column and of_row and dict(moment.settings).items() <= own:
            yield moment.value


def _steps(values: Sequence[float], way: str) -> tuple[Point, ...]:
    """A point for each value, whose `value` is the share in % of the values up to it."""
    ordered = sorted(values)
    step = max(1, len(ordered) // MOST_STEPS)
    last = len(ordered) - 1
    chosen = [*range(0, last, step), last]
    shares = ((ordered[index], 100 * (index + 1) / len(ordered)) for index in chosen)
    return tuple(Point(x, share, share, share, len(ordered), path=way) for x, share in shares)


def draw_panel(axes: Axes, chart: Chart, panel: Panel, looks: Sequence[tuple[Series, style.Look, str]]) -> None:
    """Draw the lines of one column; each begins at a share of 0."""
    for series, look, label in looks:
        if series.points:
            xs = [series.points[0].x, *(point.x for point in series.points)]
            shares = [0.0, *(point.value for point in series.points)]
            axes.step(
                xs, shares, where="post", color=look.colour, linestyle=look.dashes, linewidth=1.2, label=label or None
            )
    for line in panel.lines:
        axes.axvline(line.at, color=style.INK, linewidth=0.9, linestyle=(0, (6, 3)), zorder=1)
        axes.annotate(
            line.text,
            (line.at, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=style.note_size(),
        )
    asked = chart.asked.axis(panel.column)
    if asked.scale == "log":
        axes.set_xscale("log")
        style.plain_numbers(axes.xaxis)
    style.set_ends(axes, x=asked)
    axes.set_xlabel(asked.label or panel.label)
    axes.set_ylim(0, 102)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_ylabel(f"share of {chart.asked.cdf} in %")
    axes.grid()
    axes.tick_params(length=3)

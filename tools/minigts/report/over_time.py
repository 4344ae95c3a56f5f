"""Figures over the time of a sample, from before its tool begins until after it has ended."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from minigts.experiment_language.claims import word
from minigts.experiment_language.figures import PLAIN_FIGURE, TIME, X
from minigts.experiment_language.figures import Figure as Asked
from minigts.language.quantities import magnitude
from minigts.report import phrasing, style
from minigts.report.axis_places import full_label, path, variant
from minigts.results.tables import SeriesRow, Settings
from minigts.tools.base import Tool
from minigts.tools.columns import BESIDE, OF_QUEUES, VALUE, Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES: tuple[style.Dashes, ...] = ("-", "--", ":", "-.")
STEP_S = 0.25
"""The step in seconds over which the moments of several samples are combined."""
PANELS = (("cpu_source_inside_percent", "sender's CPU in %"), ("cpu_target_inside_percent", "receiver's CPU in %"))
"""The columns of a host's processor use as its own kernel counts it, which a program inside, such as cAdvisor, sees."""
PROCESSORS = frozenset(column.name for column in BESIDE if column.part_of == "cpu")
FLOW = "flow"
"""The setting by which lines of several flows in one panel differ."""
SET = "set "
"""The prefix of columns that have the settings of a link."""
UNITS = {"mbit": "Mbit/s", "percent": "%"}
MOST_LINES = 12
"""The most changes of links that are drawn through the other panels."""
MOST_STEPS = 400
"""The most steps of a line of a tool's figures; more could not be distinguished."""
MOST_MARKED = 120
"""The most points of a line with markers; more markers would hide each other."""
EARLY = 0.25
"""The share of a step by which the step begins before its moment, so that moments a little early belong to it."""


@dataclass(frozen=True)
class MedianLine:
    """Medians over the samples of one overlay under one condition, at the middle of each step, in seconds. `variant` is
    the condition and, where there are several, the path.
    """

    overlay: str
    variant: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class OverTime:
    """A figure's content: a panel of lines for each column."""

    measurement: str
    panels: tuple[tuple[str, tuple[MedianLine, ...]], ...]
    of_the_tool: bool = False
    of_processors: bool = True
    schedule: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()
    """The settings of links meanwhile: for each quantity of a link, pairs of seconds and the value from then on."""
    columns: tuple[str, ...] = ()
    """The columns of the panels, in their order."""
    asked: Asked = PLAIN_FIGURE
    """The figure's declaration: its style, its axes and the names that it gives."""

    @property
    def name(self) -> str:
        return self.asked.name or f"{self.measurement}-over-time"

    @property
    def title(self) -> str:
        if self.asked.title:
            return self.asked.title
        what = "over time" if self.of_the_tool else "the processor over time"
        return f"{phrasing.measurement(self.measurement)}: {what}"

    @property
    def caption(self) -> str:
        """The figure's caption."""
        own = "What the tool itself says of each moment: medians over the samples. " if self.of_the_tool else ""
        own += CAPTION if self.of_processors else "The measuring client begins at 0."
        return own + (" Below is how links were set meanwhile, in the first sample." if self.schedule else "")


def figures(rows: Sequence[SeriesRow], tools: Mapping[str, Tool], asked: Sequence[Asked] = ()) -> tuple[OverTime, ...]:
    """The figures over time that are `asked` for, and one for each other measurement with figures over time; `tools` by
    the measurements' names. Pure."""
    made = []
    for measurement in dict.fromkeys(row.measurement for row in rows):
        value = tools[measurement].value if measurement in tools else None
        own = [row for row in rows if row.measurement == measurement]
        figures_ = [each for each in asked if each.of == measurement and each.x == TIME] or [PLAIN_FIGURE]
        made += [figure_of(each, measurement, own, value) for each in figures_]
    return tuple(each for each in made if each.panels)


def _is_shown(row: SeriesRow, figure: Asked) -> bool:
    place = {"path": path(row), **dict(row.settings)}
    fixed = all(word(place.get(key, "")) == value for key, value in figure.where.items())
    return fixed and (not figure.overlays or row.overlay in figure.overlays)


def figure_of(figure: Asked, measurement: str, rows: Sequence[SeriesRow], value: Column | None) -> OverTime:
    """The figure of a measurement's rows that is asked for; `value` is the column of its tool's main figure."""
    rows = [_of_a_flow(row) for row in rows if _is_shown(row, figure)]
    schedule = _schedule([row for row in rows if row.column.startswith(SET)])
    own = [row for row in rows if not row.column.startswith(SET) and (not figure.y or row.column in figure.y)]
    columns = [name for name in dict.fromkeys(row.column for row in own) if name not in PROCESSORS]
    panels = [(name, _label(name, value), _moments(_of(own, name), figure)) for name in columns]
    # A column that is 0 throughout, as retransmissions often are, gets no panel.
    told = [each for each in panels if any(value for line in each[2] for _, value in line.points)]
    watched = [(name, label, lines) for name, label in PANELS if (lines := _lines(_of(own, name), figure))]
    both = (*told, *watched)
    return OverTime(
        measurement,
        tuple((label, lines) for _, label, lines in both),
        bool(told),
        bool(watched),
        schedule,
        tuple(name for name, _, _ in both),
        figure,
    )


def _of_a_flow(row: SeriesRow) -> SeriesRow:
    """The row of one flow of several, whose column is `bbr 2 rtt_ms`, as a row of that column with the flow's name
    among its settings; another row unchanged."""
    flow, _, column = row.column.rpartition(" ")
    if not flow or row.column.startswith(SET):
        return row
    return replace(row, column=column, settings=((FLOW, flow), *row.settings))


def _of(rows: Sequence[SeriesRow], column: str) -> list[SeriesRow]:
    return [row for row in rows if row.column == column]


def _schedule(rows: Sequence[SeriesRow]) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
    first = [row for row in rows if (row.sample, row.settings) == (rows[0].sample, rows[0].settings)]
    return tuple(
        (_of_link(name.removeprefix(SET)), tuple((row.at_s, row.value) for row in first if row.column == name))
        for name in dict.fromkeys(row.column for row in first)
    )


def _of_link(quantity: str) -> str:
    """`ams-bra rate_mbit` → `ams-bra: rate, Mbit/s`; `ams-bra up` → `ams-bra: up`"""
    link, _, field = quantity.rpartition(" ")
    what, _, unit = field.partition("_")
    return f"{link}: {what}, {UNITS.get(unit, unit)}" if unit else f"{link}: {what}"


def _label(column: str, value: Column | None) -> str:
    if (queue := next((each for each in OF_QUEUES if each.name == column), None)) is not None:
        return full_label(queue.heading(""))
    if column != VALUE:
        return full_label(phrasing.column(column, (value and value.unit) or ""))
    return full_label(value.heading("")) if value else column


def _moments(rows: Sequence[SeriesRow], figure: Asked) -> tuple[MedianLine, ...]:
    """As `_lines`, in steps as long as the tool's intervals."""
    ordered: dict[tuple[str, Settings], list[float]] = {}
    for row in rows:
        ordered.setdefault((row.sample, row.settings), []).append(row.at_s)
    gaps = [after - before for each in ordered.values() for before, after in pairwise(sorted(each))]
    first, last = min(row.at_s for row in rows), max(row.at_s for row in rows)
    step_s = max(statistics.median(gaps) if gaps else STEP_S, (last - first) / MOST_STEPS) or STEP_S
    return _lines(rows, figure, step_s, first - EARLY * step_s, EARLY)


def _lines(
    rows: Sequence[SeriesRow], figure: Asked, step_s: float = STEP_S, first_s: float = 0.0, drawn_at: float = 0.5
) -> tuple[MedianLine, ...]:
    """The lines of a panel, by overlay and variant; `drawn_at` is the share of a step at which its point is drawn."""
    rows = sorted(rows, key=lambda row: [magnitude(value) for _, value in row.settings])
    several = len({(row.source, row.target) for row in rows}) > 1
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        way = [figure.word_name(path(row), f"{row.source} – {row.target}")] if several else []
        words = ", ".join(filter(None, (*way, variant(row, figure))))
        steps = found.setdefault((row.overlay, words), {})
        steps.setdefault(math.floor((row.at_s - first_s) / step_s), []).append(row.value)
    return tuple(
        MedianLine(
            overlay,
            words,
            tuple(
                (first_s + (step + drawn_at) * step_s, statistics.median(values))
                for step, values in sorted(steps.items())
            ),
        )
        for (overlay, words), steps in found.items()
    )


CAPTION = (
    "Use of each host's processor, as its kernel counts it, in steps of a quarter of a second: medians over the "
    "samples. The measuring client begins at 0, within such a step; for a second before it and after it the hosts are "
    "left alone."
)


def _looks(lines: Sequence[MedianLine]) -> dict[tuple[str, str], style.Look]:
    """The overlay's look, with dashes for the variant; with a single overlay each variant has its own look."""
    overlays = list(dict.fromkeys(line.overlay for line in lines))
    variants = list(dict.fromkeys(line.variant for line in lines))
    if len(overlays) == 1 and len(variants) > 1:
        return {(overlays[0], name): look for name, look in zip(variants, _distinct(variants), strict=True)}
    own = style.looks(overlays)
    return {
        (line.overlay, line.variant): replace(
            own[line.overlay], dashes=DASHES[variants.index(line.variant) % len(DASHES)]
        )
        if len(variants) > 1
        else own[line.overlay]
        for line in lines
    }


def _distinct(names: Sequence[str]) -> list[style.Look]:
    return list(style.looks([style.PLAIN, *names]).values())[: len(names)]


def draw(content: OverTime) -> Figure:
    """A panel for each column, a line for each overlay and variant; columns that stand beside another one share its
    panel, with their axis on the right."""
    every = [line for _, lines in content.panels for line in lines]
    looks, names = _looks(every), _names(every, content.asked)
    drawn = dict(zip(content.columns, content.panels, strict=True))
    beside = {name: of for name in drawn if (of := content.asked.axis(name).beside) in drawn}
    own = [name for name in drawn if name not in beside]
    ratios = [2.0] * len(own) + [0.9] * len(content.schedule)
    with style.sheet(sum(ratios) + 0.9, content.asked.style) as figure:
        grid = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)
        last_s = max(at for line in every for at, _ in line.points)
        for axes, (label, points) in zip(grid[len(own) :, 0], content.schedule, strict=True):
            _draw_schedule(axes, label, points, last_s)
        moments = sorted({at for _, points in content.schedule for at, _ in points if at > 0})
        for axes in grid[: len(own), 0] if len(moments) <= MOST_LINES else ():
            for at in moments:
                axes.axvline(at, color=style.FAINT, linewidth=0.8, linestyle="--")
        for axes, column in zip(grid[: len(own), 0], own, strict=True):
            for line in drawn[column][1]:
                look = looks[line.overlay, line.variant]
                axes.plot(
                    [at for at, _ in line.points],
                    [value for _, value in line.points],
                    label=names[line.overlay, line.variant],
                    color=look.colour,
                    linestyle=look.dashes,
                    marker=look.marker if len(line.points) <= MOST_MARKED else None,
                    markersize=2.6,
                    markerfacecolor=look.colour if look.filled else style.PAPER,
                    linewidth=1.0,
                )
            axes.axvline(0, color=style.FAINT, linewidth=0.8)
            _set_axis(axes, column, drawn[column], content.asked)
            axes.grid(axis="y")
            for other in (name for name, of in beside.items() if of == column):
                _draw_on_the_right(axes, other, drawn[other], looks, content.asked)
        grid[-1, 0].set_xlabel(content.asked.axis(X).label or "seconds since the client began")
        style.legend(figure, list(grid[: len(own), 0]), list(names.values()))
    return figure


def _set_axis(axes: Axes, column: str, panel: tuple[str, Sequence[MedianLine]], figure: Asked) -> None:
    """Name, ends and scale of a panel's axis of figures."""
    label, lines = panel
    asked = figure.axis(column)
    axes.set_ylabel(asked.label or label)
    highest = max(1.05 * value for line in lines for _, value in line.points)
    axes.set_ylim(0, max(105.0, highest) if label in dict(PANELS).values() else highest)
    if asked.scale == "log":
        axes.set_yscale("log")
        style.plain_numbers(axes.yaxis)
        axes.set_ylim(auto=True)
    style.set_ends(axes, figure.axis(X), asked)
    axes.tick_params(length=3)


def _draw_on_the_right(
    axes: Axes,
    column: str,
    panel: tuple[str, Sequence[MedianLine]],
    looks: Mapping[tuple[str, str], style.Look],
    figure: Asked,
) -> None:
    """Another column in a panel: dotted lines in the colours of the panel's, with an axis of their own."""
    right = axes.twinx()
    for line in panel[1]:
        times, values = zip(*line.points, strict=True)
        right.plot(times, values, color=looks[line.overlay, line.variant].colour, linestyle=":", linewidth=1.2)
    _set_axis(right, column, (f"{panel[0]} (dotted)", panel[1]), figure)
    right.spines["right"].set_visible(True)


def _draw_schedule(axes: Axes, label: str, points: Sequence[tuple[float, float]], last_s: float) -> None:
    """Draws each value until the next one, and the last until the end."""
    at, values = zip(*points, (max(last_s, points[-1][0]), points[-1][1]), strict=True)
    axes.step(at, values, where="post", color=style.INK, linewidth=1.0)
    what, _, unit = label.partition(", ")
    axes.set_ylabel(f"{what.replace(': ', chr(10))}\n{unit}".rstrip())
    axes.set_ylim(0, 1.1 * max(*values, 1e-9))
    axes.grid(axis="y")
    axes.tick_params(length=3)


def _names(lines: Sequence[MedianLine], asked: Asked) -> dict[tuple[str, str], str]:
    """The lines' names in the legend; they have the overlay's name if there are several, or no variant."""
    one = len({line.overlay for line in lines}) == 1
    return {
        (line.overlay, line.variant): line.variant
        if one and line.variant
        else " · ".join(filter(None, (phrasing.label(line.overlay, asked), line.variant)))
        for line in lines
    }

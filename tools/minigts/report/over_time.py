"""Figures over the time of a sample: what was watched from before its tool began until after it had ended."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from minigts.report import phrasing, signs, style
from minigts.results.tables import SeriesRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES: tuple[style.Dashes, ...] = ("-", "--", ":", "-.")
STEP_S = 0.25
"""Moments of several samples are brought together in steps of so much."""
PANELS = (("cpu_source_inside_percent", "sender's CPU in %"), ("cpu_target_inside_percent", "receiver's CPU in %"))
"""Of a host's processor as its own kernel counts it: what a program inside, such as cAdvisor, sees."""


@dataclass(frozen=True)
class Line:
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
    panels: tuple[tuple[str, tuple[Line, ...]], ...]

    @property
    def name(self) -> str:
        return f"{self.measurement}-over-time"

    @property
    def title(self) -> str:
        return f"{phrasing.measurement(self.measurement)}: the processor over time"


def figures(rows: Sequence[SeriesRow]) -> tuple[OverTime, ...]:
    """One for each measurement of which something was watched. Pure."""
    made = []
    for measurement in dict.fromkeys(row.measurement for row in rows):
        own = [row for row in rows if row.measurement == measurement]
        panels = tuple((label, _lines([row for row in own if row.column == column])) for column, label in PANELS)
        made.append(OverTime(measurement, tuple(panel for panel in panels if panel[1])))
    return tuple(each for each in made if each.panels)


def _lines(rows: Sequence[SeriesRow]) -> tuple[Line, ...]:
    several = len({(row.source, row.target) for row in rows}) > 1
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        path = [f"{row.source} – {row.target}"] if several else []
        variant = ", ".join([*path, *(f"{name} {value}" for name, value in row.settings)])
        steps = found.setdefault((row.overlay, variant), {})
        steps.setdefault(math.floor(row.at_s / STEP_S), []).append(row.value)
    return tuple(
        Line(
            overlay,
            variant,
            tuple(((step + 0.5) * STEP_S, statistics.median(values)) for step, values in sorted(steps.items())),
        )
        for (overlay, variant), steps in found.items()
    )


CAPTION = (
    "Use of each host's processor, as its kernel counts it, in steps of a quarter of a second: medians over the "
    "samples. The measuring client begins at 0, within such a step; for a second before it and after it the hosts are "
    "left alone."
)


def _looks(lines: Sequence[Line]) -> dict[tuple[str, str], style.Look]:
    """An overlay's own, whose dashes tell variants apart; over one overlay alone each variant has one of its own."""
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
    """A panel for each host, a line for each overlay and variant."""
    every = [line for _, lines in content.panels for line in lines]
    looks, names = _looks(every), _names(every)
    with style.sheet(2.0 * len(content.panels) + 0.9) as figure:
        grid = figure.subplots(len(content.panels), 1, sharex=True, squeeze=False)
        for axes, (label, lines) in zip(grid[:, 0], content.panels, strict=True):
            for line in lines:
                look = looks[line.overlay, line.variant]
                axes.plot(
                    [at for at, _ in line.points],
                    [value for _, value in line.points],
                    label=names[line.overlay, line.variant],
                    color=look.colour,
                    linestyle=look.dashes,
                    marker=look.marker,
                    markersize=2.6,
                    markerfacecolor=look.colour if look.filled else style.PAPER,
                    linewidth=1.0,
                )
            axes.axvline(0, color=style.FAINT, linewidth=0.8)
            axes.set_ylabel(label)
            axes.set_ylim(0, max(105.0, *(1.05 * value for line in lines for _, value in line.points)))
            axes.grid(axis="y")
            axes.tick_params(length=3)
        grid[-1, 0].set_xlabel("seconds since the client began")
        signs.legend(figure, list(grid[:, 0]), list(names.values()))
    return figure


def _names(lines: Sequence[Line]) -> dict[tuple[str, str], str]:
    """For the legend: an overlay's name only where there are several, or nothing else tells lines apart."""
    one = len({line.overlay for line in lines}) == 1
    return {
        (line.overlay, line.variant): line.variant
        if one and line.variant
        else " · ".join(filter(None, (phrasing.label(line.overlay), line.variant)))
        for line in lines
    }

"""The content of a figure: points in series, series in panels, panels over one x axis. `chart` draws this data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from minigts.experiment_language.figures import PLAIN_FIGURE, Figure, Line, X
from minigts.tools.base import Tool

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
FACTORS = {"kbit": 0.001, "mbit": 1.0, "gbit": 1000.0, "ms": 0.001, "s": 1.0, "min": 60.0}
UNITS = {
    "kbit": "Mbit/s",
    "mbit": "Mbit/s",
    "gbit": "Mbit/s",
    "ms": "s",
    "s": "s",
    "min": "s",
    "%": "%",
    "B": "bytes",
    "packet": "packets",
    "packets": "packets",
}


@dataclass(frozen=True)
class Point:
    """A median of `n` samples over one path at place `x`, the ends of its interval, and the samples excluded."""

    x: float
    value: float
    low: float
    high: float
    n: int
    published: float | None = None
    predicted: float | None = None
    excluded: tuple[float, ...] = ()
    doubtful: bool = False
    """Whether every sample of it was taken while the machine was starved."""
    path: str = ""
    """`ams → bra`"""


@dataclass(frozen=True)
class Series:
    """The points with one kind of marker: of an overlay, of the values of settings that are not on the axis, and of a
    path where several would share a place."""

    overlay: str
    variant: str
    points: tuple[Point, ...]
    path: str = ""

    @property
    def condition(self) -> str:
        """What distinguishes it from other series of its overlay, in words."""
        return ", ".join(filter(None, (self.path, self.variant)))


@dataclass(frozen=True)
class Panel:
    """One quantity over the chart's x axis."""

    column: str
    label: str
    series: tuple[Series, ...]
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class VerticalLine:
    """A vertical line at `x`: the largest datagram in a packet of `overlays`."""

    x: float
    text: str
    overlays: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """One figure. `ticks` are places of the x axis with their names; with `bars` the axis is discrete."""

    name: str
    title: str
    measurements: tuple[str, ...]
    tool: Tool
    x: str
    x_label: str
    ticks: tuple[tuple[float, str], ...]
    bars: bool
    panels: tuple[Panel, ...]
    marks: tuple[VerticalLine, ...] = ()
    relative_to: str | None = None
    beyond: float | None = None
    """The lowest prediction, where it is too far above everything measured to be drawn."""
    scattered: bool = False
    """Whether a series has a marker for each of several paths at one place of the axis."""
    by_column: bool = False
    """Whether single columns are asked for, so that a latency by hops is drawn without its segments."""
    elsewhere: int = 0
    """The number of paths that are not drawn because they begin at another host than the first one."""
    asked: Figure = PLAIN_FIGURE
    """The figure's declaration: its style, its axes and the names that it gives."""

    @property
    def overlays(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.overlay for series in self.panels[0].series))

    @property
    def variants(self) -> tuple[str, ...]:
        """The conditions that distinguish the series of one overlay."""
        return tuple(dict.fromkeys(series.condition for series in self.panels[0].series))

    @property
    def outside(self) -> int:
        """The number of points that lie outside the axes that the declaration sets."""
        along = self.asked.axis(X)
        return sum(
            self.asked.axis(panel.column).beyond(point.x if self.asked.cdf else point.value)
            or (not self.asked.cdf and along.beyond(point.x))
            for panel in self.panels
            for series in panel.series
            for point in series.points
        )


WRITTEN = {"kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s", "ms": "ms", "s": "s", "min": "min"}
"""The units as an axis shows them where all its values are written in the same one."""


def numbers_of(texts: Sequence[str]) -> tuple[dict[str, float], str] | None:
    """The numbers of these texts and their unit: that in which all of them are written, `10ms` and `20ms` are 10 and 20
    ms; otherwise one for all, `100ms` and `2s` are 0.1 and 2 s. None when one of them is a word."""
    found = {text: number_of(text) for text in texts}
    if not all(found.values()):
        return None
    units = {match[2] for text in texts if (match := _NUMBER.fullmatch(text))}
    if len(units) == 1 and (unit := WRITTEN.get(*units)) is not None:
        return {text: float(match[1]) for text in texts if (match := _NUMBER.fullmatch(text))}, unit
    return {text: number[0] for text, number in found.items() if number}, next(n[1] for n in found.values() if n)


def number_of(text: str) -> tuple[float, str] | None:
    """`1400B` → 1400 and `bytes`, `1gbit` → 1000 and `Mbit/s`, `5` → 5 without unit; None for a word."""
    found = _NUMBER.fullmatch(text)
    if not found or (found[2] and found[2] not in UNITS):
        return None
    return float(found[1]) * FACTORS.get(found[2], 1.0), UNITS.get(found[2], "")

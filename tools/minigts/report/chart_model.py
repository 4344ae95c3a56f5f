"""What a figure shows: points in series, series in panels, panels over one x axis. Pure data; drawn by `chart`."""

from __future__ import annotations

from dataclasses import dataclass

from minigts.experiments.vocabulary import Line
from minigts.tools.base import Tool


@dataclass(frozen=True)
class Point:
    """A median with the ends of its interval at a place of the x axis; `n` samples, some excluded beside them."""

    x: float
    value: float
    low: float
    high: float
    n: int
    published: float | None = None
    predicted: float | None = None
    excluded: tuple[float, ...] = ()
    doubtful: bool = False
    """Every sample behind it was taken while the machine was starved."""


@dataclass(frozen=True)
class Series:
    """What one kind of marker shows: an overlay, and the values of settings that are not on the axis."""

    overlay: str
    variant: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """One quantity over the chart's x axis."""

    column: str
    label: str
    series: tuple[Series, ...]
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Mark:
    """Something drawn at an x: one overlay's largest datagram in a packet. `overlays` share it."""

    x: float
    text: str
    overlays: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """One figure. `ticks` are places of the x axis with their names; with `bars` there is nothing between them."""

    name: str
    title: str
    measurements: tuple[str, ...]
    tool: Tool
    x: str
    x_label: str
    ticks: tuple[tuple[float, str], ...]
    bars: bool
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...] = ()
    relative_to: str | None = None
    beyond: float | None = None
    """The least that the plan predicts, where that lies too far above everything measured to be drawn."""
    pooled: int = 1
    """How many paths stand behind a point at the most."""

    @property
    def overlays(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.overlay for series in self.panels[0].series))

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.variant for series in self.panels[0].series))

"""The figure of a latency by hops: the RTT with its stacked segments, and its difference from their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from minigts.experiment_language.figures import PLAIN_FIGURE, X
from minigts.experiment_language.figures import Figure as Asked
from minigts.report import phrasing, style
from minigts.report.points import LatencyPoint
from minigts.tools.columns import VALUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = Sequence[tuple[float, float, float]]
"""Median and the two ends of its interval, for each point."""


def latency_by_hops(points: Sequence[LatencyPoint], asked: Asked = PLAIN_FIGURE) -> Figure:
    """The RTT by hops above; below, its difference from the sum of the single segments, with the tolerance shaded."""
    residuals = any(point.residual_ms is not None for point in points)
    with style.sheet((5.2 if residuals else 3.4) + 0.07 * len(_series(points)), asked.style) as figure:
        if residuals:
            axes, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
            _residuals(lower, points)
        else:
            axes = lower = figure.subplots()
        beside = max(0.36, 0.1 - style.offsets(len(_series(points)))[0])
        printed = {(point.hops - beside, point.published_ms) for point in points if point.published_ms is not None}
        style.mark_published(axes, sorted(printed))
        width = style.bar_width(len(_series(points)))
        for overlay, _, offset, own in _series(points):
            _stacks(axes, own, offset, width, label=overlay == points[0].overlay)
        for name, usual, offset, own in _series(points):
            look = replace(usual, label=asked.word_name(name, usual.label))
            _measured(axes, own, [(p.median_ms, p.low_ms, p.high_ms) for p in own], look, offset)
            style.mark_excluded(axes, [(point.hops + offset, value) for point in own for value in point.excluded])
            style.mark_doubtful(axes, [(point.hops + offset, point.median_ms) for point in own if point.doubtful])
        value = asked.axis(VALUE)
        axes.set_ylabel(value.label or "RTT in ms")
        if value.scale == "log":
            axes.set_yscale("log")
            style.plain_numbers(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        style.set_ends(axes, y=value)
        axes.grid(axis="y")
        axes.tick_params(length=3)
        style.legend(figure, [axes], [asked.word_name(name, look.label) for name, look, _, _ in _series(points)])
        _hop_axis(lower, points, asked)
    return figure


def _series(points: Sequence[LatencyPoint]) -> list[tuple[str, style.Look, float, list[LatencyPoint]]]:
    """Each overlay with its look, its offset from the hop count, and its points."""
    names = list(dict.fromkeys(point.overlay for point in points))
    looks = style.looks(names)
    return [
        (name, looks[name], offset, [point for point in points if point.overlay == name])
        for name, offset in zip(names, style.offsets(len(names)), strict=True)
    ]


def _measured(axes: Axes, points: Sequence[LatencyPoint], values: Values, look: style.Look, offset: float) -> None:
    """Medians with their intervals."""
    middle = [value[0] for value in values]
    axes.errorbar(
        [point.hops + offset for point in points],
        middle,
        yerr=[[m - low for m, low, _ in values], [high - m for m, _, high in values]],
        label=look.label,
        **style.markers(look, joined=False),
    )


def _stacks(axes: Axes, points: Sequence[LatencyPoint], offset: float, width: float, *, label: bool) -> None:
    """The single segments' medians as stacked blocks, whose height is the expected RTT."""
    for point in points:
        ends = list(accumulate(point.segments_ms, initial=0.0))
        for index, length in enumerate(point.segments_ms):
            axes.bar(
                point.hops + offset,
                length,
                bottom=ends[index],
                width=width,
                facecolor=style.SHADE,
                edgecolor=style.FAINT,
                linewidth=0.6,
                label="single segments, stacked" if label and point is points[-1] and index == 0 else None,
                zorder=1.5,
            )


def _residuals(axes: Axes, points: Sequence[LatencyPoint]) -> None:
    """Median minus sum of segments; the tolerance is a shaded box around 0 at each hop count."""
    widest = {p.hops: p.tolerance_ms for p in points if p.tolerance_ms is not None}
    axes.bar(
        list(widest),
        [2 * tolerance for tolerance in widest.values()],
        bottom=[-tolerance for tolerance in widest.values()],
        width=0.9,
        facecolor=style.SHADE,
        edgecolor=style.FAINT,
        linewidth=0.5,
        label=f"tolerance ±({points[0].tolerance.in_words})",
    )
    axes.axhline(0, color=style.INK, linewidth=0.7)
    for _, look, offset, own in _series(points):
        known = [point for point in own if point.residual_ms is not None]
        values = [(p.residual_ms or 0.0, p.residual_low_ms or 0.0, p.residual_high_ms or 0.0) for p in known]
        _measured(axes, known, values, look, offset)
    axes.set_ylim(*_symmetric(points))
    axes.set_ylabel("RTT − sum\nof segments in ms")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[:1], labels[:1], loc="upper left")


def _symmetric(points: Sequence[LatencyPoint]) -> tuple[float, float]:
    """Limits around 0 that include every tolerance and every interval."""
    ends = [value for p in points for value in (p.tolerance_ms, p.residual_low_ms, p.residual_high_ms) if value]
    most = 1.12 * max((abs(value) for value in ends), default=1.0)
    return -most, most


def _hop_axis(axes: Axes, points: Sequence[LatencyPoint], asked: Asked) -> None:
    """Hop counts with the host's name beneath."""
    hosts = {point.hops: {p.target for p in points if p.hops == point.hops} for point in points}
    names = [phrasing.short(min(own)) if len(own) == 1 else f"{len(own)} hosts" for own in hosts.values()]
    axes.set_xticks(list(hosts), [f"{hops}\n{name}" for hops, name in zip(hosts, names, strict=True)])
    axes.set_xlim(min(hosts) - 0.55, max(hosts) + 0.55)
    axes.set_xlabel(asked.axis(X).label or f"hops from {phrasing.short(points[0].source)}, and the host there")
    axes.grid(axis="y")

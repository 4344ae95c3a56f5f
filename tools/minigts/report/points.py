"""Computes residuals and shares of the ceiling from the summary. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from minigts.judge.latency import segments_of, single_segments, way
from minigts.judge.tolerances import Tolerance, exchange_tolerance, round_trip
from minigts.results.tables import SummaryRow
from minigts.tools import TOOLS
from minigts.tools.base import Tool
from minigts.topology.plan.plan import Plan


@dataclass(frozen=True)
class LatencyPoint:
    """The RTT of one path, in ms, and the sum of its segments.

    `residual_ms` is the path's median minus the sum of the segments' medians. Its interval joins the intervals of
    path and segments in quadrature, as for independent errors. `segments_ms` is empty when one of them was not
    measured. A path that is itself the only measurement of its one segment has a sum, but no residual.
    """

    overlay: str
    measurement: str
    source: str
    target: str
    hops: int
    n: int
    median_ms: float
    low_ms: float
    high_ms: float
    published_ms: float | None
    tolerance: Tolerance
    segments_ms: tuple[float, ...] = ()
    residual_ms: float | None = None
    residual_low_ms: float | None = None
    residual_high_ms: float | None = None
    excluded: tuple[float, ...] = ()
    doubtful: bool = False

    @property
    def sum_ms(self) -> float | None:
        return sum(self.segments_ms) if self.segments_ms else None

    @property
    def tolerance_ms(self) -> float | None:
        return None if self.sum_ms is None else self.tolerance.distance(self.sum_ms)

    @property
    def within(self) -> bool | None:
        """Whether the residual lies inside the tolerance; None when there is no residual."""
        if self.residual_ms is None or self.sum_ms is None:
            return None
        return self.tolerance.allows(self.median_ms, self.sum_ms)


@dataclass(frozen=True)
class ThroughputPoint:
    """The throughput over one path, in Mbit/s. `bound_mbit` is the plan's prediction: TCP's ceiling, or the UDP that
    should arrive."""

    overlay: str
    measurement: str
    tool: Tool
    source: str
    target: str
    hops: int
    n: int
    median_mbit: float
    bound_mbit: float | None
    low_mbit: float | None = None
    high_mbit: float | None = None
    """The ends of the median's interval; None for a single sample."""

    @property
    def is_spread(self) -> bool:
        """Whether the ends are more than a twentieth apart, so that the median alone would say too much."""
        return self.low_mbit is not None and self.high_mbit is not None and self.high_mbit > 1.05 * self.low_mbit

    @property
    def share(self) -> float | None:
        """The median over the bound: 1.0 is the ceiling; None without a bound."""
        return self.median_mbit / self.bound_mbit if self.bound_mbit else None


def paths(summary: Iterable[SummaryRow], measurement: str) -> list[SummaryRow]:
    """The measurement's rows over whole paths, by overlay in the order of the file, then by hops."""
    rows = [row for row in summary if row.measurement == measurement and row.kind == "path"]
    order = list(dict.fromkeys(row.overlay for row in rows))
    return sorted(rows, key=lambda row: (order.index(row.overlay), row.hops))


def measurements(summary: Iterable[SummaryRow], quantity: str) -> list[str]:
    """The names of a quantity's measurements with whole paths, in the order of tools (TCP before UDP), then in that of
    the file."""
    rows = [row for row in summary if row.kind == "path" and row.tool.quantity == quantity]
    labels = dict.fromkeys(tool.value.label for tool in TOOLS.values())
    return list(dict.fromkeys(row.measurement for label in labels for row in rows if row.tool.value.label == label))


def points_from_first(points: Sequence[LatencyPoint]) -> list[LatencyPoint]:
    """The points whose path begins at the same host as the first one's, which a figure by hops can show."""
    return [point for point in points if point.source == points[0].source]


def latency_points(summary: Sequence[SummaryRow], measurement: str, plan: Plan | None) -> tuple[LatencyPoint, ...]:
    """A point for each overlay and path, with the sum of its segments where all of them were measured."""
    rows = [row for row in summary if row.measurement == measurement]
    singles = {
        name: single_segments((row for row in rows if row.overlay == name), plan) for name in {r.overlay for r in rows}
    }
    return tuple(
        _latency_point(
            row,
            segments_of(row, singles[row.overlay], plan) if plan else (),
            _tolerance(row, segments_of(row, singles[row.overlay], plan) if plan else (), plan),
        )
        for row in paths(summary, measurement)
    )


def _tolerance(row: SummaryRow, segments: Sequence[SummaryRow], plan: Plan | None) -> Tolerance:
    """The judge's tolerance between the path and the sum of its segments."""
    return round_trip(None) if plan is None else exchange_tolerance(plan, way(row, plan), 1 + len(segments))


def _latency_point(row: SummaryRow, segments: Sequence[SummaryRow], tolerance: Tolerance) -> LatencyPoint:
    point = LatencyPoint(
        overlay=row.overlay,
        measurement=row.measurement,
        source=row.source,
        target=row.target,
        hops=row.hops,
        n=row.n,
        median_ms=row.median,
        low_ms=row.median - row.below,
        high_ms=row.median + row.above,
        published_ms=row.published,
        tolerance=tolerance,
        segments_ms=tuple(segment.median for segment in segments),
        excluded=tuple(row.cell.excluded),
        doubtful=row.doubtful,
    )
    if point.sum_ms is None or list(segments) == [row]:
        return point
    residual = row.median - point.sum_ms
    lowest = math.hypot(row.below, *(segment.above for segment in segments))
    highest = math.hypot(row.above, *(segment.below for segment in segments))
    return replace(
        point,
        residual_ms=residual,
        residual_low_ms=residual - lowest,
        residual_high_ms=residual + highest,
    )


def throughput_points(summary: Sequence[SummaryRow], plan: Plan | None) -> tuple[ThroughputPoint, ...]:
    """The points of TCP, then of UDP. A row without a ceiling gets the plan's for its path."""
    return tuple(
        ThroughputPoint(
            row.overlay,
            row.measurement,
            row.tool,
            row.source,
            row.target,
            row.hops,
            row.n,
            row.median,
            row.predicted if row.predicted is not None else _ceiling(row, plan),
            row.low,
            row.high,
        )
        for measurement in measurements(summary, "throughput")
        for row in paths(summary, measurement)
    )


def _ceiling(row: SummaryRow, plan: Plan | None) -> float | None:
    path = way(row, plan) if plan and row.tool.prediction.kind == "ceiling" else None
    return path.tcp_ceiling_mbit if path else None

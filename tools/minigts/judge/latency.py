"""sum-of-segments, as-declared and steady: a path's round trips against a sum, or against each other. The tolerance is
the file's `tolerances: {rtt: …}` in real time, and the clock's resolution in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from minigts.judge.samples import ENOUGH, PathSamples, median_within, plural
from minigts.judge.tolerances import Tolerance, exchange_tolerance
from minigts.judge.verdicts import Judgement, Tested, all_of
from minigts.topology.plan.elements import Path, Port
from minigts.topology.plan.plan import Plan


class BetweenHosts(Protocol):
    """Whatever was measured between two hosts."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def hops(self) -> int: ...
    @property
    def kind(self) -> str: ...


T = TypeVar("T", bound=BetweenHosts)
Ends = frozenset[str]


@dataclass(frozen=True)
class Sum:
    """A path's median round trip and the expected one, `total_ms`; `tolerance` is allowed between the two."""

    cell: PathSamples
    total_ms: float
    tolerance: Tolerance

    @property
    def residual_ms(self) -> float:
        return self.cell.estimate.median - self.total_ms

    @property
    def agrees(self) -> bool:
        return self.tolerance.allows(self.cell.estimate.median, self.total_ms)

    @property
    def tested(self) -> Tested:
        """The verdict. `total_ms` counts as exact, also where it was measured."""
        if self.cell.by_interval:  # the tolerance already covers the spread of a single measurement
            return Tested("held" if self.agrees else "failed")
        allowed = self.tolerance.distance(self.total_ms)
        return median_within(self.cell, self.total_ms - allowed, self.total_ms + allowed)


def single_segments(measured: Iterable[T], plan: Plan | None) -> dict[Ends, T]:
    """The measurements of single segments, by their ends. A path of one hop stands in for its segment, unless the way
    back is another."""
    found: dict[Ends, T] = {}
    for each in measured:
        ends = frozenset((each.source, each.target))
        path = way(each, plan) if plan is not None and plan.has_several_ways and each.kind != "segment" else None
        if path is not None and len(path.crossed) > 1:
            continue
        if each.hops == 1 and (each.kind == "segment" or ends not in found):
            found[ends] = each
    return found


def segments_of(measured: BetweenHosts, singles: Mapping[Ends, T], plan: Plan) -> tuple[T, ...]:
    """The measured segments of the path, in order; empty where the plan has no path, a segment was not measured, or the
    path takes other ways, too, and no segments alone make up its round trip."""
    path = way(measured, plan)
    if path is not None and path.ways_there:
        declared_ms = {link.name: link.rtt_ms for link in plan.links}
        total_ms = round(sum(declared_ms[name] for name in path.links), 6)
        path = path if (path.rtt_ms, path.rtt_most_ms) == (total_ms, None) else None
    ends = {link.name: frozenset(link.ends) for link in plan.links}
    keys = [ends[name] for name in path.links] if path else []
    return tuple(singles[key] for key in keys) if all(key in singles for key in keys) else ()


def way(measured: BetweenHosts, plan: Plan) -> Path | None:
    """The plan's path between the same hosts; None where it has none."""
    try:
        return plan.path(measured.source, measured.target)
    except KeyError:
        return None


def segment_sums(cells: Sequence[PathSamples], plan: Plan) -> tuple[Sum, ...]:
    """For each path of several hops: its median and the sum of its segments' medians; of several ways the nearest of
    what these sum up to."""
    singles = single_segments(cells, plan)
    found = []
    medians_ms = {ends: each.estimate.median for ends, each in singles.items()}
    for cell in cells:
        path = way(cell, plan) if cell.hops > 1 else None
        if path is not None and path.ways_there:
            if (bounds := _bounds_ms(path, medians_ms, plan)) is not None:
                nearest_ms = min(max(cell.estimate.median, bounds[0]), bounds[1])
                found.append(Sum(cell, nearest_ms, exchange_tolerance(plan, path, 1 + len(path.crossed))))
        elif path is not None and (parts := segments_of(cell, singles, plan)):
            total_ms = sum(part.estimate.median for part in parts)
            found.append(Sum(cell, total_ms, exchange_tolerance(plan, path, 1 + len(parts))))
    return tuple(found)


def _bounds_ms(path: Path, measured_ms: Mapping[Ends, float], plan: Plan) -> tuple[float, float] | None:
    """The least and the most that the segments of a path with several ways sum up to; None where one was not measured.

    A segment's round trip is parted as declared: its two delays, and half of the rest each way."""
    links = {link.name: link for link in plan.links}
    if any(frozenset(links[name].ends) not in measured_ms for name in path.crossed):
        return None

    def one_way_ms(port: Port) -> float:
        link = links[port.link]
        return port.outgoing.delay_ms + (measured_ms[frozenset(link.ends)] - link.rtt_ms) / 2

    ends = (path.source, path.each_there), (path.target, path.each_back)
    sums = [[sum(map(one_way_ms, plan.senders_on(start, over))) for over in ways] for start, ways in ends]
    return sum(map(min, sums)), sum(map(max, sums))


def sum_of_segments(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether each path of several hops equals the sum of its segments' medians."""
    return _agreement(segment_sums(cells, plan), "the sum of their segments")


def as_declared(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether each path has the round trip that the topology declares."""
    declared = [
        Sum(cell, _nearest_ms(cell, cell.predicted, plan), exchange_tolerance(plan, way(cell, plan), 1, frames=True))
        for cell in cells
        if cell.predicted is not None
    ]
    return _agreement(declared, "what the topology declares")


def _nearest_ms(cell: PathSamples, predicted_ms: float, plan: Plan) -> float:
    """The declared round trip; of a path whose ways take different times the one that is nearest to the measured."""
    path = way(cell, plan)
    if path is None or path.rtt_most_ms is None:
        return predicted_ms
    return min(max(cell.estimate.median, predicted_ms), predicted_ms + path.rtt_most_ms - path.rtt_ms)


def steady(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether no sample lies further from its own path's or segment's median than the round trip's tolerance.

    For a path that was measured once, this holds for 99 % of its exchanges.
    """
    spreads = [
        (spread, exchange_tolerance(plan, way(cell, plan), 2).distance(cell.estimate.median), cell)
        for cell in cells
        if (spread := _furthest(cell)) is not None
    ]
    if not spreads:
        return Judgement("undecided", f"no path has {ENOUGH} samples")
    furthest, allowed, cell = max(spreads, key=lambda each: each[0] / (each[1] or 1e-9))
    outside = sum(spread > allowed for spread, allowed, _ in spreads)
    few = f"; {len(cells) - len(spreads)} have fewer than {ENOUGH} samples" if len(spreads) < len(cells) else ""
    which = f"{outside} of {len(spreads)} paths vary" if outside else f"all {len(spreads)} paths hardly vary"
    digits = _digits(allowed)
    return Judgement(
        "failed" if outside else "undecided" if few else "held",
        f"{which}{few}; the largest deviation, {cell.source} to {cell.target} over {plural(cell.hops, 'hop')}, is "
        f"{furthest:.3f} ms from a median of {cell.estimate.median:.2f} ms "
        f"({allowed:.{digits}f} ms allowed)",
    )


def _digits(allowed_ms: float) -> int:
    """Decimals to print: enough to show the resolution of virtual time's clock."""
    return 4 if allowed_ms < 0.1 else 2


def _furthest(cell: PathSamples) -> float | None:
    """The largest distance of a sample from the median, in ms; None where there are too few samples."""
    if cell.values and (cell.basis != "samples" or len(cell.values) >= ENOUGH):
        return max(abs(value - cell.estimate.median) for value in cell.samples)
    return None if cell.p99 is None else max(0.0, cell.p99 - cell.estimate.median)


def _agreement(sums: Sequence[Sum], reference: str) -> Judgement:
    if not sums:
        return Judgement("undecided", f"no path could be compared with {reference}")
    furthest = max(sums, key=lambda each: abs(each.residual_ms) / (each.tolerance.distance(each.total_ms) or 1e-9))
    outside = sum(not each.agrees for each in sums)
    which = f"{outside} of {len(sums)} paths miss" if outside else f"all {len(sums)} paths agree with"
    cell = furthest.cell
    word, p = all_of([each.tested for each in sums])
    digits = _digits(furthest.tolerance.distance(furthest.total_ms))
    return Judgement(
        word,
        f"{which} {reference}; the largest difference, {cell.source} to {cell.target} over "
        f"{plural(cell.hops, 'hop')}, is {furthest.residual_ms:+.{digits}f} ms "
        f"({furthest.tolerance.distance(furthest.total_ms):.{digits}f} ms allowed)",
        p,
    )

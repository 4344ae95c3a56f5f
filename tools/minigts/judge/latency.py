"""sum-of-segments, as-declared and steady: a path's round trips against a sum, or against each other. The tolerance is
the file's `tolerances: {rtt: …}` in real time, and the clock's resolution in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from minigts.judge.samples import ENOUGH, PathSamples, plural, within
from minigts.judge.tolerances import Tolerance, exchanged
from minigts.judge.verdicts import Judgement, Tested, all_of
from minigts.topology.plan.elements import Path
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
        allowed = self.tolerance.of(self.total_ms)
        return within(self.cell, self.total_ms - allowed, self.total_ms + allowed)


def single_segments(measured: Iterable[T]) -> dict[Ends, T]:
    """The measurements of single segments, by their ends. A path of one hop stands in for its segment."""
    found: dict[Ends, T] = {}
    for each in measured:
        ends = frozenset((each.source, each.target))
        if each.hops == 1 and (each.kind == "segment" or ends not in found):
            found[ends] = each
    return found


def segments_of(measured: BetweenHosts, singles: Mapping[Ends, T], plan: Plan) -> tuple[T, ...]:
    """The measured segments of the path, in order; empty where the plan has no path, or a segment was not measured."""
    path = way(measured, plan)
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
    """For each path of several hops: its median and the sum of its segments' medians."""
    singles = single_segments(cells)
    return tuple(
        Sum(cell, sum(part.estimate.median for part in parts), exchanged(plan, way(cell, plan), 1 + len(parts)))
        for cell in cells
        if cell.hops > 1 and (parts := segments_of(cell, singles, plan))
    )


def sum_of_segments(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether each path of several hops equals the sum of its segments' medians."""
    return _agreement(segment_sums(cells, plan), "the sum of their segments")


def as_declared(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether each path has the round trip that the topology declares."""
    declared = [
        Sum(cell, cell.predicted, exchanged(plan, way(cell, plan), 1, frames=True))
        for cell in cells
        if cell.predicted is not None
    ]
    return _agreement(declared, "what the topology declares")


def steady(cells: Sequence[PathSamples], plan: Plan) -> Judgement:
    """Whether no sample lies further from its own path's or segment's median than the round trip's tolerance.

    For a path that was measured once, this holds for 99 % of its exchanges.
    """
    spreads = [
        (spread, exchanged(plan, way(cell, plan), 2).of(cell.estimate.median), cell)
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
    furthest = max(sums, key=lambda each: abs(each.residual_ms) / (each.tolerance.of(each.total_ms) or 1e-9))
    outside = sum(not each.agrees for each in sums)
    which = f"{outside} of {len(sums)} paths miss" if outside else f"all {len(sums)} paths agree with"
    cell = furthest.cell
    word, p = all_of([each.tested for each in sums])
    digits = _digits(furthest.tolerance.of(furthest.total_ms))
    return Judgement(
        word,
        f"{which} {reference}; the largest difference, {cell.source} to {cell.target} over "
        f"{plural(cell.hops, 'hop')}, is {furthest.residual_ms:+.{digits}f} ms "
        f"({furthest.tolerance.of(furthest.total_ms):.{digits}f} ms allowed)",
        p,
    )

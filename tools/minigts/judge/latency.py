"""sum-of-segments, as-declared and steady: a path's round trips against a sum, or against each other. In real time the
file's `tolerances: {rtt: …}` decide, in virtual time what the clock resolves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from minigts.judge.cells import ENOUGH, PathCell, plural, within
from minigts.judge.tolerances import Tolerance, exchanged
from minigts.judge.verdicts import Judgement, Tested, all_of
from minigts.topology.parts import Path
from minigts.topology.plan import Plan


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
    """A path's median round trip beside what it should be, in ms; `tolerance` is between the two."""

    cell: PathCell
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
        """What it is held against is taken as it is, also where that is measured."""
        if self.cell.by_interval:  # what was measured once has its tolerance here, and no interval beside it
            return Tested("held" if self.agrees else "failed")
        allowed = self.tolerance.of(self.total_ms)
        return within(self.cell, self.total_ms - allowed, self.total_ms + allowed)


def single_segments(measured: Iterable[T]) -> dict[Ends, T]:
    """What was measured over one segment, by its ends. A path of one hop stands in for its segment."""
    found: dict[Ends, T] = {}
    for each in measured:
        ends = frozenset((each.source, each.target))
        if each.hops == 1 and (each.kind == "segment" or ends not in found):
            found[ends] = each
    return found


def segments_of(measured: BetweenHosts, singles: Mapping[Ends, T], plan: Plan) -> tuple[T, ...]:
    """The measured segments on the way, in order; empty where the plan knows no way, or one was not measured."""
    path = way(measured, plan)
    ends = {link.name: frozenset(link.ends) for link in plan.links}
    keys = [ends[name] for name in path.links] if path else []
    return tuple(singles[key] for key in keys) if all(key in singles for key in keys) else ()


def way(measured: BetweenHosts, plan: Plan) -> Path | None:
    """The plan's path between the same hosts."""
    try:
        return plan.path(measured.source, measured.target)
    except KeyError:
        return None


def segment_sums(cells: Sequence[PathCell], plan: Plan) -> tuple[Sum, ...]:
    """Each path of several hops beside the sum of its segments' own medians."""
    singles = single_segments(cells)
    return tuple(
        Sum(cell, sum(part.estimate.median for part in parts), exchanged(plan, way(cell, plan), 1 + len(parts)))
        for cell in cells
        if cell.hops > 1 and (parts := segments_of(cell, singles, plan))
    )


def sum_of_segments(cells: Sequence[PathCell], plan: Plan) -> Judgement:
    """Each path of several hops against the sum of its segments' own medians."""
    return _agreement(segment_sums(cells, plan), "the sum of its segments")


def as_declared(cells: Sequence[PathCell], plan: Plan) -> Judgement:
    """Each path against the round trip that the topology declares."""
    declared = [
        Sum(cell, cell.predicted, exchanged(plan, way(cell, plan), 1, frames=True))
        for cell in cells
        if cell.predicted is not None
    ]
    return _agreement(declared, "what the topology declares")


def steady(cells: Sequence[PathCell], plan: Plan) -> Judgement:
    """No sample of any path or segment lies further from the median of its own than the tolerance of its round trip.

    Of a path that was measured once, 99 % of its echo requests must not.
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
        f"{which}{few}; furthest from its median lies one of {cell.source} to {cell.target} over "
        f"{plural(cell.hops, 'hop')}, by {furthest:.3f} of {cell.estimate.median:.2f} ms "
        f"({allowed:.{digits}f} ms allowed)",
    )


def _digits(allowed_ms: float) -> int:
    """Behind the point, so that what the clock of virtual time resolves can be seen."""
    return 4 if allowed_ms < 0.1 else 2


def _furthest(cell: PathCell) -> float | None:
    """How far from the median its samples reach, in ms; None where they are too few to tell."""
    if cell.values and (cell.basis != "samples" or len(cell.values) >= ENOUGH):
        return max(abs(value - cell.estimate.median) for value in cell.samples)
    return None if cell.p99 is None else max(0.0, cell.p99 - cell.estimate.median)


def _agreement(sums: Sequence[Sum], reference: str) -> Judgement:
    if not sums:
        return Judgement("undecided", f"no path could be held against {reference}")
    furthest = max(sums, key=lambda each: abs(each.residual_ms) / (each.tolerance.of(each.total_ms) or 1e-9))
    outside = sum(not each.agrees for each in sums)
    which = f"{outside} of {len(sums)} paths miss" if outside else f"all {len(sums)} paths agree with"
    cell = furthest.cell
    word, p = all_of([each.tested for each in sums])
    digits = _digits(furthest.tolerance.of(furthest.total_ms))
    return Judgement(
        word,
        f"{which} {reference}; the furthest, {cell.source} to {cell.target} over {plural(cell.hops, 'hop')}, lies "
        f"{abs(furthest.residual_ms):.{digits}f} ms {'above' if furthest.residual_ms >= 0 else 'below'} "
        f"({furthest.tolerance.of(furthest.total_ms):.{digits}f} ms allowed)",
        p,
    )

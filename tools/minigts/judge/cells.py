"""What is judged: the samples of one quantity between two hosts, and how two such cells compare.

What counts as a sample is said in docs/decisions/0063-one-course.md: in real time a repetition, in virtual time a
replicate. Whether one cell lies below another is decided by the Wilcoxon–Mann–Whitney test (decision 10), of one course
of events by the figures themselves, and of what was measured once by whether the intervals that its tolerance gives lie
apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from minigts.judge.statistics import (
    NOTICEABLE,
    Difference,
    Estimate,
    Trend,
    change,
    difference,
    rank_chances,
    sign_chance,
    significant,
    trend,
)
from minigts.judge.tolerances import Tolerance
from minigts.judge.verdicts import Tested
from minigts.language.figures import span

ENOUGH = 5
"""Five samples on one side of a limit lie there by chance once in 32 times; four once in 16, which decides nothing."""
Basis = Literal["samples", "course", "replicates"]


@dataclass(frozen=True, kw_only=True)
class PathCell:
    """All good samples of one quantity between two hosts, in `unit`, and their `estimate`.

    `predicted` is what the plan promises, in the same unit; None where it promises nothing. Of TCP whose hosts' buffers
    may be the limit that is the most of it, and `predicted_least` the least.
    """

    source: str
    target: str
    hops: int
    kind: Literal["path", "segment"] = "path"
    unit: str
    estimate: Estimate
    predicted: float | None = None
    predicted_least: float | None = None
    values: tuple[float, ...] = ()
    """The independent values that `estimate` is of; none where a tolerance stands for its interval."""
    basis: Basis = "samples"
    """What they are: samples in real time; in virtual time the median of one course of events, or of each replicate."""
    every: tuple[float, ...] = ()
    """Every sample, repetitions within a course as well; empty where they are `values`."""
    p99: float | None = None
    """Of what was measured once: 99 % of its own exchanges were as quick."""

    @property
    def samples(self) -> tuple[float, ...]:
        return self.every or self.values

    @property
    def exact(self) -> bool:
        """Whether chance has no part in it: one course of events, or replicates that are all alike."""
        return self.basis == "course" or (
            self.basis == "replicates" and len(self.values) >= ENOUGH and len(set(self.values)) == 1
        )

    @property
    def by_interval(self) -> bool:
        """Whether its interval decides, and no test: that of an exact figure has no width."""
        return not self.values or self.exact

    @property
    def enough(self) -> bool:
        """Whether it may decide anything."""
        return self.by_interval or len(self.values) >= ENOUGH


def measured_once(value: float, tolerance: Tolerance) -> Estimate:
    """Of a single measurement whose tolerance stands for the interval that it cannot have."""
    return Estimate(1, value, None, value, value - tolerance.of(value), value + tolerance.of(value))


def directed(first: PathCell, last: PathCell) -> tuple[Trend, float | None]:
    """Whether what was measured falls or rises from `first` to `last`, by 1 % at least and the test is sure of it; and
    the chance of as clear a difference were there none, None where no test is made."""
    if by_intervals(first, last):
        return trend(first.estimate, last.estimate), None
    lower, higher = rank_chances(first.values, last.values)
    if abs(change(first.estimate.median, last.estimate.median)) < NOTICEABLE:
        return "level", None
    return ("falls" if significant(lower) else "rises" if significant(higher) else "unclear"), min(lower, higher)


def by_intervals(*cells: PathCell) -> bool:
    """Whether their intervals decide: where one has no samples, or all are exact."""
    return any(not cell.values for cell in cells) or all(cell.exact for cell in cells)


def within(cell: PathCell, low: float, high: float) -> Tested:
    """Whether the median lies from `low` to `high`, both included: two one-sided sign tests."""
    if cell.by_interval:
        return interval_within(*cell.estimate.bounds, low, high)
    values, of = cell.values, len(cell.values)
    inside = max(
        sign_chance(sum(value >= low for value in values), of) if low > -math.inf else 0.0,
        sign_chance(sum(value <= high for value in values), of) if high < math.inf else 0.0,
    )
    outside = min(
        sign_chance(sum(value < low for value in values), of), sign_chance(sum(value > high for value in values), of)
    )
    return _decided(inside, outside)


def ratio_within(above: PathCell, below: PathCell, low: float, high: float) -> Tested:
    """Whether `above` lies from `low` to `high` times `below`: two one-sided rank tests of it against so many times the
    other (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987; by ranks)."""
    if by_intervals(above, below):
        (least, most), (other_least, other_most) = above.estimate.bounds, below.estimate.bounds
        if other_least <= 0:  # of nothing there is no share
            return Tested("undecided")
        return interval_within(least / other_most, most / other_least, low, high)
    inside, outside = 0.0, 1.0
    if low > -math.inf:
        under, over = rank_chances([low * value for value in below.values], above.values)
        inside, outside = max(inside, over), min(outside, under)
    if high < math.inf:
        under, over = rank_chances([high * value for value in below.values], above.values)
        inside, outside = max(inside, under), min(outside, over)
    return _decided(inside, outside)


def interval_within(least: float, most: float, low: float, high: float) -> Tested:
    """An interval wholly inside held, one wholly outside failed."""
    if low <= least and most <= high:
        return Tested("held")
    return Tested("failed" if most < low or least > high else "undecided")


def _decided(inside: float, outside: float) -> Tested:
    if significant(inside):
        return Tested("held", inside)
    return Tested("failed", outside) if significant(outside) else Tested("undecided", inside)


def ratio_percent(above: PathCell, below: PathCell) -> tuple[float, float, float]:
    """Low end, value and high end of what the median of `above` is of that of `below`, in per cent.

    The interval is the bootstrap's; without samples it is that of both intervals' ends.
    """
    test = _test(below, above)
    if test is not None and test.ratio is not None:
        return 100 * test.ratio.low, 100 * test.ratio.value, 100 * test.ratio.high
    (low, high), (below_low, below_high) = above.estimate.bounds, below.estimate.bounds
    ratio = _percent(above.estimate.median, below.estimate.median)
    return _percent(low, below_high), ratio, _percent(high, below_low)


def evidence(first: PathCell, last: PathCell) -> str:
    """The test's name, chance and effect, to end a sentence with; nothing where it was not made."""
    test = _test(first, last)
    if test is None or not (first.enough and last.enough):
        return ""
    p = min(test.p_lower, test.p_higher)
    return f"; Wilcoxon–Mann–Whitney, one-sided p {chance_in_words(p)}, Cliff's δ = {test.delta:+.2f}"


def chance_in_words(p: float) -> str:
    """`= 0.031`, `< 0.001`."""
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def interval_in_words(low: float, high: float, digits: str, *cells: PathCell) -> str:
    """` (95 % interval 47.1 to 47.6)`; nothing where the figures have none."""
    told = span(f"{low:{digits}}", f"{high:{digits}}")
    return f" (95 % interval {told})" if have_interval(*cells) else ""


def have_interval(*cells: PathCell) -> bool:
    """Whether there is an interval to show: exact figures have none, nor have single samples."""
    return not all(cell.exact for cell in cells) and all(cell.estimate.low is not None or cell.exact for cell in cells)


def by_hops(cells: Iterable[PathCell]) -> list[PathCell]:
    """The whole paths, the shortest first."""
    return sorted((cell for cell in cells if cell.kind == "path"), key=lambda cell: cell.hops)


def ends(cells: Sequence[PathCell]) -> tuple[PathCell, PathCell] | None:
    """The paths with the fewest and the most hops; None when all have the same."""
    ordered = by_hops(cells)
    return (ordered[0], ordered[-1]) if ordered and ordered[0].hops < ordered[-1].hops else None


def plural(count: int, one: str) -> str:
    """`1 hop`, `2 hops`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _test(first: PathCell, last: PathCell) -> Difference | None:
    if by_intervals(first, last):
        return None
    return difference([(first.values, last.values)], seed=1)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else math.inf

"""What is judged: the samples of one quantity between two hosts, and how two such cells compare.

What counts as a sample is said in docs/decisions/samples.md: in real time a repetition, in virtual time a
replicate. The Wilcoxon–Mann–Whitney test (the same page) decides whether one cell lies below another. For cells of one
course of events the figures themselves decide; for a single measurement, whether the intervals that its tolerance gives
lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from minigts.judge.statistics import (
    NOTICEABLE,
    Estimate,
    SampleDifference,
    Trend,
    coverage,
    difference,
    noticeable,
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
Basis = Literal["samples", "course", "draw", "replicates"]


@dataclass(frozen=True, kw_only=True)
class PathSamples:
    """All good samples of one quantity between two hosts, in `unit`, with their `estimate`.

    `predicted` is the plan's figure, in the same unit; None where the plan predicts nothing. Where the hosts' buffers
    may limit TCP, `predicted` is the upper bound and `predicted_least` the lower.
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
    """The independent values that `estimate` summarises; empty where a tolerance gives the interval."""
    basis: Basis = "samples"
    """What `values` are: samples in real time; in virtual time medians, of one course of events, of one of several that
    chance might have given, or of replicates."""
    every: tuple[float, ...] = ()
    """Every sample, also repetitions within a course; empty where `values` has them all."""
    keys: tuple[int, ...] = ()
    """Which repetition, in virtual time which replicate, each of `values` is of; empty where nobody asks."""
    p99: float | None = None
    """The 99th percentile of the exchanges of a single measurement, in `unit`; None for several samples."""

    @property
    def samples(self) -> tuple[float, ...]:
        return self.every or self.values

    @property
    def exact(self) -> bool:
        """Whether chance has no part in the figure: one course of events, or replicates that are all alike."""
        return self.basis == "course" or (
            self.basis == "replicates" and len(self.values) >= ENOUGH and len(set(self.values)) == 1
        )

    @property
    def by_interval(self) -> bool:
        """Whether the interval decides, and no test. The interval of a single course has no width."""
        return not self.values or self.exact or self.basis == "draw"

    @property
    def enough(self) -> bool:
        """Whether the cell has samples enough for a verdict."""
        return self.by_interval or len(self.values) >= ENOUGH


def measured_once(value: float, tolerance: Tolerance) -> Estimate:
    """The estimate from a single measurement; the tolerance gives the interval that one sample cannot have."""
    return Estimate(1, value, None, value, value - tolerance.distance(value), value + tolerance.distance(value))


def directed_trend(first: PathSamples, last: PathSamples) -> tuple[Trend, float | None]:
    """The trend from `first` to `last`, and its p value; None where no test is made. A trend falls or rises when the
    test is significant and the medians differ by at least 1 % of the first. It is level when two one-sided tests show
    that the difference is within 1 %, and otherwise unclear."""
    if intervals_decide(first, last):
        return trend(first.estimate, last.estimate), None
    lower, higher = _chances(first, last)
    if noticeable(first.estimate.median, last.estimate.median):
        return ("falls" if significant(lower) else "rises" if significant(higher) else "unclear"), min(lower, higher)
    margin = NOTICEABLE * abs(first.estimate.median)
    _, not_below = _chances(first, last, lambda value: value - margin)
    not_above, _ = _chances(first, last, lambda value: value + margin)
    level = max(not_below, not_above)
    return ("level", level) if significant(level) else ("unclear", min(lower, higher))


def intervals_decide(*cells: PathSamples) -> bool:
    """Whether the cells' intervals decide, because one cell has no samples or all cells are single courses."""
    return any(not cell.values for cell in cells) or all(cell.by_interval for cell in cells)


def _chances(
    below: PathSamples, above: PathSamples, moved: Callable[[float], float] = lambda value: value
) -> tuple[float, float]:
    """The one-sided p values that `above` lies as low, and as high, as this against the moved values of `below`, if
    both are alike. Where one of them is exact, its copies are one figure, and the sign test tests the other against
    it; otherwise it is the rank test. Not both are exact."""
    reference = tuple(map(moved, below.values))
    if below.exact:
        limit, values = reference[0], above.values
        signs = [(value > limit) - (value < limit) for value in values]
    elif above.exact:
        signs = [(above.values[0] > value) - (above.values[0] < value) for value in reference]
    else:
        return rank_chances(reference, above.values)
    return sign_chance(signs.count(-1), len(signs)), sign_chance(signs.count(1), len(signs))


def median_within(cell: PathSamples, low: float, high: float) -> Tested:
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


def ratio_within(above: PathSamples, below: PathSamples, low: float, high: float) -> Tested:
    """Whether `above` lies from `low` to `high` times `below`: two one-sided rank tests of `above` against multiples of
    `below` (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987; by ranks)."""
    if intervals_decide(above, below):
        (least, most), (other_least, other_most) = above.estimate.bounds, below.estimate.bounds
        if other_least <= 0:  # a ratio to zero is undefined
            return Tested("undecided")
        return interval_within(least / other_most, most / other_least, low, high)
    inside, outside = 0.0, 1.0
    if low > -math.inf:
        under, over = _chances(below, above, lambda value: low * value)
        inside, outside = max(inside, over), min(outside, under)
    if high < math.inf:
        under, over = _chances(below, above, lambda value: high * value)
        inside, outside = max(inside, under), min(outside, over)
    return _decided(inside, outside)


def interval_within(least: float, most: float, low: float, high: float) -> Tested:
    """`held` for an interval wholly inside the range, `failed` for one wholly outside, otherwise `undecided`."""
    if low <= least and most <= high:
        return Tested("held")
    return Tested("failed" if most < low or least > high else "undecided")


def _decided(inside: float, outside: float) -> Tested:
    if significant(inside):
        return Tested("held", inside)
    return Tested("failed", outside) if significant(outside) else Tested("undecided", inside)


def ratio_percent(above: PathSamples, below: PathSamples) -> tuple[float, float, float]:
    """The ratio of the median of `above` to that of `below`, in per cent: low end of its interval, value, high end.

    The interval is a bootstrap interval; without samples it comes from the ends of both cells' intervals.
    """
    test = _test(below, above)
    if test is not None and test.ratio is not None:
        return 100 * test.ratio.low, 100 * test.ratio.value, 100 * test.ratio.high
    (low, high), (below_low, below_high) = above.estimate.bounds, below.estimate.bounds
    ratio = _percent(above.estimate.median, below.estimate.median)
    return _percent(low, below_high), ratio, _percent(high, below_low)


def evidence(first: PathSamples, last: PathSamples) -> str:
    """The end of a sentence with the test's name, p value and effect size; empty where no test was made."""
    test = _test(first, last)
    if test is None or not (first.enough and last.enough):
        return ""
    if first.exact or last.exact:
        return f"; sign test against one course, one-sided p {chance_in_words(min(_chances(first, last)))}"
    p = min(test.p_lower, test.p_higher)
    return f"; Wilcoxon–Mann–Whitney, one-sided p {chance_in_words(p)}, Cliff's δ = {test.delta:+.2f}"


def chance_in_words(p: float) -> str:
    """`= 0.031`, `< 0.001`."""
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def interval_in_words(low: str, high: str, unit: str, of: int | None, *cells: PathSamples) -> str:
    """` (95 % interval 47.1 to 47.6)`, or ` (range 47.1 to 47.6, 93.75 %)` where it is the interval of the median `of`
    so few values that it is their whole range; None where it is that of a ratio of two medians. Empty where the cells'
    figures have no interval. A `unit` stands after the two ends, with its space."""
    if not have_interval(*cells):
        return ""
    covered = None if of is None else coverage(of)
    told = f"{span(low, high)}{unit}"
    return f" (95 % interval {told})" if covered is None else f" (range {told}, {100 * covered:g} %)"


def have_interval(*cells: PathSamples) -> bool:
    """Whether there is an interval to show; exact figures and single samples have none."""
    return not all(cell.exact for cell in cells) and all(cell.estimate.low is not None or cell.exact for cell in cells)


def paths_by_hops(cells: Iterable[PathSamples]) -> list[PathSamples]:
    """The whole paths, the shortest first."""
    return sorted((cell for cell in cells if cell.kind == "path"), key=lambda cell: cell.hops)


def ends(cells: Sequence[PathSamples]) -> tuple[PathSamples, PathSamples] | None:
    """The paths with the fewest and the most hops; None when all have the same number."""
    ordered = paths_by_hops(cells)
    return (ordered[0], ordered[-1]) if ordered and ordered[0].hops < ordered[-1].hops else None


def plural(count: int, one: str) -> str:
    """`1 hop`, `2 hops`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _test(first: PathSamples, last: PathSamples) -> SampleDifference | None:
    if intervals_decide(first, last):
        return None
    return difference([(first.values, last.values)], seed=1)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else math.inf

"""Statistics of samples: median, spread, confidence interval, and whether one series lies below another.

They are pure and give the same on every machine. docs/decisions/samples.md says why these were chosen.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing

RESAMPLES = 5000
LEVEL = 0.95
"""The level of every confidence interval."""
MOST_IN_RANGE = 5
"""Up to so many values, the bootstrap's interval of their median is their whole range: the median of a resample is an
extreme one with a chance of 5.8 % for five values, and of 0.9 % for six, where each tail of the interval has 2.5 %."""
NOTICEABLE = 0.01
"""A smaller relative change counts as no change."""

SIGNIFICANCE = 0.05
"""The chance of error up to which a test decides."""
MOST_PAIRS = 2_500
"""A test of a stratum with up to this many pairs of samples is exact; with more it uses the normal approximation."""

Floats = np.typing.NDArray[np.float64]
Trend = Literal["falls", "level", "rises", "unclear"]


@dataclass(frozen=True)
class Middle:
    """The median of samples of one thing, in their own unit. `low` and `high` end its 95 % bootstrap interval; both are
    None for a single sample, which says nothing of its own spread."""

    n: int
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """As `Middle`, with the samples' mean and standard deviation, which is None for a single sample."""

    n: int
    mean: float
    stdev: float | None
    median: float
    low: float | None
    high: float | None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval; without one, the median itself."""
        if self.low is None or self.high is None:
            return self.median, self.median
        return self.low, self.high

    def times(self, factor: float) -> Estimate:
        """The estimate of values that are so many times as large; `factor` is above 0."""
        low, high, stdev = (None if own is None else own * factor for own in (self.low, self.high, self.stdev))
        return replace(self, mean=self.mean * factor, stdev=stdev, median=self.median * factor, low=low, high=high)


def middle(values: Sequence[float], seed: int = 0) -> Middle:
    """The median and its percentile bootstrap interval.

    The median, because one sample that the machine disturbed must not move the result. With n samples the interval
    cannot be wider than their range; for n = 3 it covers about 75 %, not 95. Raises ValueError without values.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    if not values:
        raise ValueError("no values")
    if len(values) == 1:
        return Middle(1, values[0], None, None)
    return Middle(len(values), statistics.median(values), *bootstrap(values, seed))


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """As `middle`, with mean and sample standard deviation. Raises ValueError without values."""
    found = middle(values, seed)
    stdev = statistics.stdev(values) if found.n > 1 else None
    return Estimate(found.n, statistics.fmean(values), stdev, found.median, found.low, found.high)


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of the median. The order of `values` does not matter."""
    return _interval(_medians(values, np.random.Generator(np.random.PCG64(seed))))


def _medians(values: Sequence[float], rng: np.random.Generator) -> Floats:
    """The medians of RESAMPLES resamples.

    The median of a resample is one of the sorted samples, or the mean of two of them. The order statistics of uniform
    numbers say which, so a long series need not be drawn again for each resample.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    # The k-th smallest of n uniform numbers is Beta(k, n + 1 - k); the next one lies between it and 1.
    middle_rank = (count + 1) // 2
    lower = rng.beta(middle_rank, count + 1 - middle_rank, RESAMPLES)
    if count % 2:
        return ordered[_places(lower, count)]
    above = 1 - (1 - lower) * rng.random(RESAMPLES) ** (1 / (count - middle_rank))
    return (ordered[_places(lower, count)] + ordered[_places(above, count)]) / 2


def _places(shares: Floats, count: int) -> np.typing.NDArray[np.intp]:
    return np.minimum((shares * count).astype(np.intp), count - 1)


def _interval(estimates: Floats) -> tuple[float, float]:
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(estimates, [tail, 1 - tail])
    return float(low), float(high)


def coverage(number: int) -> float | None:
    """The chance that the range of so many values holds the median of what they are drawn from, where `bootstrap` gives
    their whole range: 1 - 2 / 2**n for up to five values (the sign test's interval). None for more values, whose
    interval is narrower than their range and has LEVEL."""
    return 1 - 0.5 ** (number - 1) if number <= MOST_IN_RANGE else None


def noticeable(first: float, last: float) -> bool:
    """Whether two figures differ by NOTICEABLE of the first one at least; from 0, every other figure does."""
    return abs(last - first) >= NOTICEABLE * abs(first) and last != first


def change(first: float, last: float) -> float:
    """How much larger `last` is than `first`, relatively: −0.1 is a fall by a tenth. 0 when `first` is 0."""
    return (last - first) / first if first else 0.0


def trend(first: Estimate, last: Estimate) -> Trend:
    """The trend from `first` to `last`: it falls or rises when the intervals lie apart and the medians differ by more
    than 1 %, is level when the medians differ by less, and is unclear otherwise. It is for exact figures, and for
    single measurements with a tolerance, which no test could tell from level ones."""
    if not noticeable(first.median, last.median):
        return "level"
    (first_low, first_high), (last_low, last_high) = first.bounds, last.bounds
    if last_high < first_low:
        return "falls"
    if last_low > first_high:
        return "rises"
    return "unclear"


Strata = Sequence[tuple[Sequence[float], Sequence[float]]]
"""A pair of series of samples, `a` and `b`, for each stratum; samples are compared only within a stratum."""


@dataclass(frozen=True)
class Effect:
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SampleDifference:
    """How `b` lies against `a`, over one or several strata.

    `delta` is Cliff's delta: how much likelier a sample of b lies above one of a than below, from −1 (every b below
    every a) to 1. `p_lower` is the chance of a delta as low as this, or lower, if there is no difference; `p_higher`
    likewise. `shift` is the median of b minus that of a, averaged over the strata; `ratio` is the median of b over that
    of a, as geometric mean over the strata, and None where a sample is 0 or below. Both have 95 % bootstrap intervals.
    """

    strata: int
    n_a: int
    n_b: int
    delta: float
    p_lower: float
    p_higher: float
    shift: Effect
    ratio: Effect | None

    @property
    def p(self) -> float:
        """The two-sided p value."""
        return min(1.0, 2 * min(self.p_lower, self.p_higher))

    @property
    def lower(self) -> bool | None:
        """Whether b lies below a. True when the test is significant and the medians differ by at least 1 %; False when
        the test is significant the other way, or the whole interval of the ratio lies above 0.99; None otherwise."""
        relative = self.ratio.value if self.ratio else 1 + math.copysign(1, self.shift.value)
        if significant(self.p_lower) and relative <= 1 - NOTICEABLE:
            return True
        level = self.ratio is not None and self.n_a > self.strata < self.n_b and self.ratio.low > 1 - NOTICEABLE
        return False if level or significant(self.p_higher) else None


def difference(strata: Strata, seed: int = 0) -> SampleDifference:
    """The Wilcoxon-Mann-Whitney test of `b` against `a`, stratified, with Cliff's delta and the ratio of medians.

    The test is exact, ties included: it counts every arrangement of the samples within their strata. Only a stratum of
    more than 2500 pairs uses the normal approximation. Raises ValueError where a series is empty.
    Source: Lehmann, Nonparametrics (1975), sections 1.3 to 3.3; Cliff, Psychological Bulletin 114 (1993).
    """
    if not strata or not all(a and b for a, b in strata):
        raise ValueError("no values")
    score = sum(_score(a, b) for a, b in strata)
    pairs = sum(len(a) * len(b) for a, b in strata)
    counts = sum(len(a) for a, _ in strata), sum(len(b) for _, b in strata)
    return SampleDifference(len(strata), *counts, score / pairs, *_chances(strata, score), *_effects(strata, seed))


def rank_chances(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The two one-sided p values of the Wilcoxon-Mann-Whitney test, without effects: that `b` lies as low as this, or
    lower, and as high as this, or higher, if both are alike. Raises ValueError where a series is empty."""
    if not a or not b:
        raise ValueError("no values")
    return _chances([(a, b)], _score(a, b))


def sign_chance(hits: int, of: int) -> float:
    """The chance of at least `hits` among `of`, each with a chance of a half. It tests on which side of a limit the
    median lies (the sign test: Dixon and Mood, Journal of the American Statistical Association 41, 1946)."""
    return math.fsum(math.comb(of, number) for number in range(hits, of + 1)) / 2.0**of


def significant(chance: float) -> bool:
    """Whether a p value decides; 0.05 itself does, however it was rounded."""
    return chance <= SIGNIFICANCE * (1 + 1e-9)


def least_p(strata: Strata) -> float:
    """The smallest two-sided p value that so many samples can give, if no two are equal."""
    arrangements = math.prod(math.comb(len(a) + len(b), len(a)) for a, b in strata)
    return min(1.0, 2 / arrangements)


def clearest_rank(samples: int) -> float:
    """The smallest one-sided p value that a rank test of so many samples on either side can give."""
    return 1 / math.comb(2 * samples, samples)


def clearest_sign(samples: int) -> float:
    """The smallest p value that a sign test of so many samples can give."""
    return 0.5**samples


def holm(chances: Sequence[float]) -> tuple[float, ...]:
    """The same p values, each raised as Holm's step-down procedure asks for testing them all at once.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    found = [0.0] * len(chances)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(chances)), key=lambda index: chances[index])):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[index]))
        found[index] = highest
    return tuple(found)


def _score(a: Sequence[float], b: Sequence[float]) -> int:
    """The number of pairs with b above a, minus the number with b below a."""
    ordered = np.sort(np.asarray(a, dtype=np.float64))
    below = np.searchsorted(ordered, b, side="left")
    above = len(ordered) - np.searchsorted(ordered, b, side="right")
    return int(np.sum(below) - np.sum(above))


def _chances(strata: Strata, score: int) -> tuple[float, float]:
    """The chances of a score of at most and of at least `score`, if a and b are alike."""
    if all(len(a) * len(b) <= MOST_PAIRS for a, b in strata):
        chances, least = np.ones(1), 0
        for a, b in strata:
            own, own_least = _distribution(a, b)
            chances, least = np.convolve(chances, own), least + own_least
        at = score - least
        return min(1.0, float(chances[: at + 1].sum())), min(1.0, float(chances[at:].sum()))
    # A score moves by steps of 2 when there are no ties: half a step is the correction for continuity.
    spread = math.sqrt(sum(_variance(a, b) for a, b in strata)) or 1.0
    return _normal((score + 1) / spread), _normal((1 - score) / spread)


def _distribution(a: Sequence[float], b: Sequence[float]) -> tuple[Floats, int]:
    """The chance of each score over all ways to label as many of the samples `a`, and the lowest score.

    The samples are taken from the smallest value up: `ways[k]` holds the scores so far, with k samples labelled a.
    """
    most, total = len(a) * len(b), len(a) + len(b)
    ways = np.zeros((len(a) + 1, 2 * most + 1))
    ways[0, most] = 1.0
    seen = 0
    for _, tied in sorted(Counter([*a, *b]).items()):
        following = np.zeros_like(ways)
        for before, new in itertools.product(range(min(len(a), seen) + 1), range(tied + 1)):
            if before + new <= len(a) and before <= seen and seen + tied - before - new <= len(b):
                gained = (tied - new) * before - new * (seen - before)
                following[before + new] += math.comb(tied, new) * _shifted(ways[before], gained)
        ways, seen = following, seen + tied
    return ways[len(a)] / math.comb(total, len(a)), -most


def _shifted(row: Floats, by: int) -> Floats:
    """The row moved `by` places up and filled with zeros."""
    moved = np.zeros_like(row)
    moved[max(0, by) : len(row) + min(0, by)] = row[max(0, -by) : len(row) - max(0, by)]
    return moved


def _variance(a: Sequence[float], b: Sequence[float]) -> float:
    """The variance of the score if a and b are alike, corrected for ties."""
    total = len(a) + len(b)
    ties = sum(count**3 - count for count in Counter([*a, *b]).values())
    return len(a) * len(b) / 3 * (total + 1 - ties / (total * (total - 1)))


def _normal(deviation: float) -> float:
    return math.erfc(-deviation / math.sqrt(2)) / 2


def _effects(strata: Strata, seed: int) -> tuple[Effect, Effect | None]:
    """The shift and the ratio of the medians, with their intervals by resampling within each stratum."""
    rng = np.random.Generator(np.random.PCG64(seed))
    medians = [(statistics.median(a), statistics.median(b)) for a, b in strata]
    drawn = [(_medians(a, rng), _medians(b, rng)) for a, b in strata]
    shift = statistics.fmean(b - a for a, b in medians)
    shifts = np.mean([b - a for a, b in drawn], axis=0)
    if min(min(series) for pair in strata for series in pair) <= 0:
        return Effect(shift, *_interval(shifts)), None
    ratio = math.exp(statistics.fmean(math.log(b / a) for a, b in medians))
    ratios = np.exp(np.mean([np.log(b / a) for a, b in drawn], axis=0))
    return Effect(shift, *_interval(shifts)), Effect(ratio, *_interval(ratios))

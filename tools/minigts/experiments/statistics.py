"""Figures over samples: middle, spread, and how sure of the middle. Pure, and the same on every machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

RESAMPLES = 5000
LEVEL = 0.95
"""Of the interval."""
NOTICEABLE = 0.01
"""A relative change below this is called none."""
ASSUMED = 0.05
"""How far off, relatively, a single sample is taken to be when nothing says so."""

Trend = Literal["falls", "level", "rises", "unclear"]


@dataclass(frozen=True)
class Middle:
    """Samples of one thing, in their own unit. `low` and `high` end the 95 % bootstrap interval of the median;
    both are None for a single sample, which says nothing of its own spread."""

    n: int
    mean: float
    stdev: float | None
    median: float
    low: float | None
    high: float | None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval; for a single sample, what is assumed of it."""
        if self.low is None or self.high is None:
            return self.median * (1 - ASSUMED), self.median * (1 + ASSUMED)
        return self.low, self.high


def middle(values: Sequence[float], seed: int = 0) -> Middle:
    """Mean, sample standard deviation, median and the percentile bootstrap interval of the median.

    The median, because one sample that the machine disturbed must not move the result. With n samples the interval
    cannot be wider than their range; for n = 3 it covers about 75 %, not 95. Raises ValueError without values.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    if not values:
        raise ValueError("no values")
    if len(values) == 1:
        return Middle(1, values[0], None, values[0], None, None)
    low, high = bootstrap(values, seed)
    return Middle(len(values), statistics.fmean(values), statistics.stdev(values), statistics.median(values), low, high)


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of the median. The order of `values` does not matter."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    rng = np.random.Generator(np.random.PCG64(seed))
    # In blocks, so that a long series of samples does not take a resample of gigabytes at once.
    block = max(1, min(RESAMPLES, 2_000_000 // len(ordered)))
    medians: list[float] = []
    while len(medians) < RESAMPLES:
        picks = rng.integers(0, len(ordered), size=(min(block, RESAMPLES - len(medians)), len(ordered)))
        medians.extend(np.median(ordered[picks], axis=1).tolist())
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.asarray(medians), [tail, 1 - tail])
    return float(low), float(high)


def within(value: float, low: float, high: float) -> bool:
    """Whether `value` lies between `low` and `high`, both allowed."""
    return low <= value <= high


def change(first: float, last: float) -> float:
    """How much larger `last` is than `first`, relatively: −0.1 is a fall by a tenth. 0 when `first` is 0."""
    return (last - first) / first if first else 0.0


def trend(first: Middle, last: Middle) -> Trend:
    """Whether what was measured changes from `first` to `last`: it does when the intervals lie apart and the
    medians differ by more than 1 %; it is level when they differ by less; otherwise it is unclear."""
    relative = change(first.median, last.median)
    if abs(relative) < NOTICEABLE:
        return "level"
    (first_low, first_high), (last_low, last_high) = first.bounds, last.bounds
    if last_high < first_low:
        return "falls"
    if last_low > first_high:
        return "rises"
    return "unclear"

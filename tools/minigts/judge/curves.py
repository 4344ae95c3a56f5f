"""slope: one figure along what varies, on logarithmic axes."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from minigts.judge.ranges import Range
from minigts.judge.samples import PathSamples, interval_within
from minigts.judge.statistics import RESAMPLES
from minigts.judge.verdicts import Tested

FEWEST_PLACES = 3
"""The fewest places of a slope: two always lie on a line."""


@dataclass(frozen=True)
class Slope:
    """The exponent b of the power law a·x^b that fits best. `low` and `high` end its 95 % interval: by resampling the
    samples at each place; the same as `value` where all figures are exact."""

    value: float
    low: float
    high: float


def slope(places: Sequence[float], cells: Sequence[PathSamples], seed: int = 1) -> Slope | None:
    """The slope of the cells' medians over these places, both in logarithms, by least squares; None where a place or a
    figure is 0 or less, or where there are fewer than FEWEST_PLACES."""
    medians = [cell.estimate.median for cell in cells]
    if len({*places}) < FEWEST_PLACES or min(*places, *medians) <= 0 or not all(map(math.isfinite, places)):
        return None
    value = _fitted(places, medians)
    if all(cell.exact or not cell.values for cell in cells):
        return Slope(value, value, value)
    rng = random.Random(seed)
    drawn = sorted(
        _fitted(places, medians)
        for _ in range(RESAMPLES // 5)
        for medians in [[_resampled(cell, rng) for cell in cells]]
        if min(medians) > 0
    )
    ends = (drawn[round(0.025 * (len(drawn) - 1))], drawn[round(0.975 * (len(drawn) - 1))])
    return Slope(value, *ends)


def _resampled(cell: PathSamples, rng: random.Random) -> float:
    values = cell.values or (cell.estimate.median,)
    return statistics.median(rng.choices(values, k=len(values)))


def _fitted(places: Sequence[float], figures: Sequence[float]) -> float:
    return statistics.linear_regression(list(map(math.log, places)), list(map(math.log, figures))).slope


def slope_within(found: Slope, range_: Range) -> Tested:
    """Whether the whole interval lies within the range."""
    return interval_within(found.low, found.high, range_.low, range_.high)

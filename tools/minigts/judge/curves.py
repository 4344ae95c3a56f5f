"""slope: one figure along what varies, on logarithmic axes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from minigts.judge.samples import PathSamples
from minigts.judge.statistics import estimate

FEWEST_PLACES = 3
"""The fewest places of a slope: two always lie on a line."""


def slope(places: Sequence[float], cells: Sequence[PathSamples], seed: int = 1) -> PathSamples | None:
    """The exponent b of the power law a·x^b that fits the cells' figures over these places best, by least squares of
    the logarithms. It has a value for each replicate, or repetition, that was measured at every place, and is exact
    where all figures are. None where a place or a figure is 0 or less, where there are fewer than FEWEST_PLACES, or
    where no replicate has them all.

    An exact figure is in each value. So are medians without samples; then the slope has no samples, either."""
    if len({*places}) < FEWEST_PLACES or min(places) <= 0 or not all(map(math.isfinite, places)):
        return None
    if all(cell.by_interval for cell in cells):
        return _of(cells[0], places, [[cell.estimate.median for cell in cells]], exact=True, seed=seed)
    varying = [_by_key(cell) for cell in cells if not cell.by_interval]
    keys = [key for key in varying[0] if all(key in each for each in varying)]
    figures = [[_at(cell, key) for cell in cells] for key in keys]
    return _of(next(cell for cell in cells if not cell.by_interval), places, figures, exact=False, seed=seed)


def _of(
    like: PathSamples, places: Sequence[float], figures: Sequence[Sequence[float]], *, exact: bool, seed: int
) -> PathSamples | None:
    """The slope of each row of figures, as samples of the same kind as those of the cell `like`."""
    if not figures or min(map(min, figures)) <= 0:
        return None
    values = tuple(_fitted(places, row) for row in figures)
    basis = "course" if exact and like.basis != "draw" else like.basis
    return replace(like, unit="", estimate=estimate(values, seed), values=values, every=(), keys=(), basis=basis)


def _by_key(cell: PathSamples) -> Mapping[int, float]:
    """The cell's values by replicate or repetition; by their order where it does not say which they are."""
    keys = cell.keys if len(cell.keys) == len(cell.values) else range(len(cell.values))
    return dict(zip(keys, cell.values, strict=True))


def _at(cell: PathSamples, key: int) -> float:
    return cell.estimate.median if cell.by_interval else _by_key(cell)[key]


def _fitted(places: Sequence[float], figures: Sequence[float]) -> float:
    return statistics.linear_regression(list(map(math.log, places)), list(map(math.log, figures))).slope

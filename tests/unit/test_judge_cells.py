from __future__ import annotations

import pytest

from minigts.judge.cells import PathCell, direction, evidence, ratio_percent
from minigts.judge.statistics import estimate


def cell(*values: float) -> PathCell:
    return PathCell(source="a", target="b", hops=1, unit="Mbit/s", estimate=estimate(values), values=values)


def test_three_below_three_fall_and_the_sentence_names_the_test() -> None:
    first, last = cell(47.0, 47.2, 47.1), cell(40.0, 40.3, 40.1)
    assert direction(first, last) == "falls"
    assert direction(last, first) == "rises"
    assert evidence(first, last) == "; Wilcoxon–Mann–Whitney, one-sided p = 0.050, Cliff's δ = -1.00"


def test_overlapping_samples_are_unclear_and_close_ones_level() -> None:
    assert direction(cell(47.0, 40.0, 47.1), cell(46.0, 39.0, 41.0)) == "unclear"
    assert direction(cell(47.0, 47.2, 47.1), cell(46.9, 46.99, 46.95)) == "level"


def test_too_few_samples_go_by_their_intervals() -> None:
    assert direction(cell(47.0), cell(30.0)) == "falls"
    assert direction(cell(47.0), cell(45.0)) == "unclear"
    assert evidence(cell(47.0), cell(30.0)) == ""
    low, ratio, high = ratio_percent(cell(50.0), cell(100.0))
    assert (low, ratio, high) == (pytest.approx(100 * 47.5 / 105), 50, pytest.approx(100 * 52.5 / 95))


def test_a_ratio_has_the_interval_of_its_resamples() -> None:
    low, ratio, high = ratio_percent(cell(45.0, 45.5, 46.0), cell(50.0, 50.5, 51.0))
    assert 100 * 45 / 51 <= low < ratio < high <= 100 * 46 / 50

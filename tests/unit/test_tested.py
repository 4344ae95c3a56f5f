from __future__ import annotations

from dataclasses import replace

from minigts.experiments.cells import Cell
from minigts.experiments.tested import direction, in_words, ratio_percent
from minigts.statistics import middle

BASE = Cell("none", "tcp", "throughput", "a", "b", 1, "path", "Mbit/s", middle([1.0]), None, None)


def cell(*values: float) -> Cell:
    return replace(BASE, middle=middle(values), values=values)


def test_three_below_three_fall_and_the_sentence_names_the_test() -> None:
    first, last = cell(47.0, 47.2, 47.1), cell(40.0, 40.3, 40.1)
    assert direction(first, last) == "falls"
    assert direction(last, first) == "rises"
    assert in_words(first, last) == "; Wilcoxon–Mann–Whitney, one-sided p = 0.050, Cliff's δ = -1.00"


def test_overlapping_samples_are_unclear_and_close_ones_level() -> None:
    assert direction(cell(47.0, 40.0, 47.1), cell(46.0, 39.0, 41.0)) == "unclear"
    assert direction(cell(47.0, 47.2, 47.1), cell(46.9, 46.99, 46.95)) == "level"


def test_too_few_samples_go_by_their_intervals() -> None:
    assert direction(cell(47.0), cell(30.0)) == "falls"
    assert direction(cell(47.0), cell(45.0)) == "unclear"
    assert in_words(cell(47.0), cell(30.0)) == ""
    assert ratio_percent(cell(47.0), cell(30.0)) is None


def test_a_ratio_has_the_interval_of_its_resamples() -> None:
    found = ratio_percent(cell(45.0, 45.5, 46.0), cell(50.0, 50.5, 51.0))
    assert found is not None
    low, ratio, high = found
    assert 100 * 45 / 51 <= low < ratio < high <= 100 * 46 / 50

from __future__ import annotations

import numpy as np
import pytest
import scipy

from minigts.judge.samples import (
    PathSamples,
    directed_trend,
    evidence,
    measured_once,
    median_within,
    ratio_percent,
    ratio_within,
)
from minigts.judge.statistics import Estimate, estimate
from minigts.judge.tolerances import Tolerance


def cell(*values: float) -> PathSamples:
    return PathSamples(source="a", target="b", hops=1, unit="Mbit/s", estimate=estimate(values), values=values)


def course(value: float) -> PathSamples:
    return PathSamples(
        source="a", target="b", hops=1, unit="Mbit/s", estimate=estimate([value]), values=(value,), basis="course"
    )


HIGH, LOW = (47.0, 47.2, 47.1, 47.3, 47.4), (40.0, 40.3, 40.1, 40.2, 40.4)


def test_five_below_five_fall_and_the_sentence_names_the_test() -> None:
    assert directed_trend(cell(*HIGH), cell(*LOW))[0] == "falls"
    assert directed_trend(cell(*LOW), cell(*HIGH))[0] == "rises"
    assert evidence(cell(*HIGH), cell(*LOW)) == "; Wilcoxon–Mann–Whitney, one-sided p = 0.004, Cliff's δ = -1.00"


def test_overlapping_samples_are_unclear_and_close_ones_level() -> None:
    assert directed_trend(cell(47.0, 40.0, 47.1), cell(46.0, 39.0, 41.0))[0] == "unclear"
    assert directed_trend(cell(47.0, 47.2, 47.1), cell(46.9, 46.99, 46.95))[0] == "level"


@pytest.mark.parametrize(
    ("last", "trend"),
    [
        ((47.05, 47.15, 47.1, 47.25, 47.0), "level"),
        ((40.0, 54.0, 47.1, 41.0, 53.0), "unclear"),  # was level, by two medians that are alike
        ((46.74, 46.76, 46.78, 46.7, 46.75), "unclear"),  # below each of the first, by less than matters, or by more
    ],
)
def test_medians_within_1_per_cent_are_level_only_where_tests_say_so(last: tuple[float, ...], trend: str) -> None:
    assert directed_trend(cell(*HIGH), cell(*last))[0] == trend


@pytest.mark.parametrize("seed", range(8))
def test_the_p_of_level_is_scipys_of_two_tests(seed: int) -> None:
    """Schuirmann's two one-sided tests, by ranks, with 1 % of the first median to either side."""
    rng = np.random.default_rng(seed)
    first, last = rng.normal(100, 0.4, size=6), rng.normal(100.2, 0.4, size=7)
    margin = 0.01 * np.median(first)
    not_below = scipy.stats.mannwhitneyu(last, first - margin, alternative="greater", method="exact").pvalue
    not_above = scipy.stats.mannwhitneyu(last, first + margin, alternative="less", method="exact").pvalue
    found, p = directed_trend(cell(*first), cell(*last))
    expected = max(not_below, not_above)
    assert found == ("level" if expected <= 0.05 else "unclear")
    if found == "level":
        assert p == pytest.approx(expected)


def test_what_was_0_rises_by_any_amount() -> None:
    assert directed_trend(course(0.0), course(5.0))[0] == "rises"
    assert directed_trend(course(0.0), course(0.0))[0] == "level"
    assert directed_trend(cell(0, 0, 0, 0, 0.0), cell(5, 5.1, 5.2, 5.3, 5.4))[0] == "rises"


def test_figures_below_0_are_level_by_the_same_rule() -> None:
    below = tuple(-value for value in HIGH)
    assert directed_trend(cell(*below), cell(*below))[0] == "level"
    assert directed_trend(cell(*below), cell(*(-value for value in LOW)))[0] == "rises"


def test_so_few_samples_are_not_enough_whatever_they_say() -> None:
    assert not cell(47.0, 47.1, 47.2, 47.3).enough
    assert cell(*HIGH).enough
    assert evidence(cell(47.0, 47.1, 47.2), cell(30.0, 30.1, 30.2)) == ""


def test_one_course_is_exact_and_shows_no_test() -> None:
    assert directed_trend(course(47.0), course(46.0))[0] == "falls"
    assert directed_trend(course(47.0), course(46.9))[0] == "level"
    assert evidence(course(47.0), course(30.0)) == ""
    assert ratio_percent(course(50.0), course(100.0)) == (50, 50, 50)


def test_a_ratio_has_the_interval_of_its_resamples() -> None:
    low, ratio, high = ratio_percent(cell(45.0, 45.5, 46.0), cell(50.0, 50.5, 51.0))
    assert 100 * 45 / 51 <= low < ratio < high <= 100 * 46 / 50


@pytest.mark.parametrize(
    ("values", "word", "p"),
    [
        ((1.0, 1.1, 1.2, 1.3, 1.4), "held", 1 / 32),
        ((1.0, 1.1, 1.2, 1.3, 2.4), "undecided", 6 / 32),
        ((2.1, 2.2, 2.3, 2.4, 2.5), "failed", 1 / 32),
        ((1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 9.0), "held", 9 / 256),
        ((0.5, 2.0, 0.5, 2.0, 0.5), "held", 1 / 32),  # both ends are within
    ],
)
def test_a_median_within_two_limits_is_told_by_two_sign_tests(values: tuple[float, ...], word: str, p: float) -> None:
    assert median_within(cell(*values), 0.5, 2.0) == (word, pytest.approx(p))


@pytest.mark.parametrize(
    ("above", "word"),
    [
        ((70.0, 71.0, 69.0, 70.5, 68.0), "held"),
        ((85.0, 86.0, 87.0, 88.0, 89.0), "failed"),
        ((70.0, 85.0, 69.0, 86.0, 68.0), "undecided"),
    ],
)
def test_60_to_80_per_cent_is_two_one_sided_tests(above: tuple[float, ...], word: str) -> None:
    assert ratio_within(cell(*above), cell(100.0, 101.0, 99.0, 100.5, 98.0), 0.6, 0.8).word == word


def test_of_nothing_there_is_no_share() -> None:
    assert ratio_within(course(0.0), course(0.0), 1.0, 2.0).word == "undecided"
    assert ratio_within(course(1.0), course(0.0), 1.0, 2.0).word == "undecided"


def test_what_was_measured_once_is_one_figure_with_its_tolerance_for_an_interval() -> None:
    assert measured_once(20.0, Tolerance(0.5, 0.1, "ms", "")) == Estimate(1, 20.0, None, 20.0, 17.5, 22.5)

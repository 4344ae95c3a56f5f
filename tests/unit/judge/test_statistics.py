from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from minigts.judge.statistics import (
    Estimate,
    bootstrap,
    change,
    coverage,
    difference,
    estimate,
    holm,
    least_p,
    rank_chances,
    sign_chance,
    significant,
    trend,
)

values = st.lists(st.floats(0.001, 1e4, allow_nan=False), min_size=2, max_size=30)


def around(median: float, half: float, n: int = 5) -> Estimate:
    return Estimate(n, median, half, median, median - half, median + half)


def test_a_single_value_has_no_interval() -> None:
    found = estimate([4.7])
    assert found == Estimate(1, 4.7, None, 4.7, None, None)
    assert found.bounds == (4.7, 4.7)


def test_identical_values_have_an_interval_without_width() -> None:
    assert estimate([4.7] * 5) == Estimate(5, pytest.approx(4.7), 0.0, 4.7, 4.7, 4.7)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate([])


@settings(max_examples=30)
@given(values=values, seed=st.integers(0, 2**32))
def test_the_interval_holds_the_median_within_the_range_whatever_the_order(values: list[float], seed: int) -> None:
    low, high = bootstrap(values, seed)
    found = estimate(values, seed)
    assert min(values) <= low <= found.median <= high <= max(values)
    assert bootstrap(list(reversed(values)), seed) == (low, high)


def test_the_interval_is_the_same_every_time_and_narrows_with_samples() -> None:
    few, many = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0] * 40
    assert bootstrap(few, 3) == bootstrap(few, 3)
    narrow, wide = bootstrap(many, 3), bootstrap(few, 3)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (around(95, 1), around(80, 1), "falls"),
        (around(95, 1), around(94.5, 1), "level"),
        (around(95, 10), around(88, 10), "unclear"),
        (around(80, 1), around(95, 1), "rises"),
        (Estimate(1, 95, None, 95, None, None), Estimate(1, 94.5, None, 94.5, None, None), "level"),
        (Estimate(1, 95, None, 95, None, None), Estimate(1, 70, None, 70, None, None), "falls"),
    ],
)
def test_a_trend_needs_intervals_that_lie_apart(first: Estimate, last: Estimate, expected: str) -> None:
    assert trend(first, last) == expected


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_the_range_of_so_few_is_their_interval_with_scipys_coverage(number: int) -> None:
    """scipy's interval of a quantile is made of two order statistics; the range is the widest."""
    ordered = [float(value) for value in range(number)]
    assert bootstrap(ordered) == (ordered[0], ordered[-1])
    covered = coverage(number)
    assert covered is not None
    test = scipy.stats.quantile_test(ordered, p=0.5)
    widest = test.confidence_interval(confidence_level=covered - 1e-9)
    assert (widest.low, widest.high) == (ordered[0], ordered[-1])
    assert np.isnan(test.confidence_interval(confidence_level=covered + 1e-6).low)


def test_the_interval_of_more_is_narrower_than_their_range() -> None:
    assert coverage(6) is None
    low, high = bootstrap([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert 1 < low < high < 6


def test_change_is_relative() -> None:
    assert change(10.0, 9.0) == pytest.approx(-0.1)
    assert change(0.0, 9.0) == 0.0


@pytest.mark.parametrize("sizes", [(3, 3), (5, 4), (7, 9), (20, 20)], ids=str)
@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "ties"])
def test_the_test_is_scipys_exact_one(sizes: tuple[int, int], rounded: bool) -> None:
    """scipy counts arrangements too, but where there are ties only by permuting; that is slow beyond a few."""
    rng = np.random.default_rng(sum(sizes))
    digits = 0 if rounded else 9
    a, b = np.round(rng.normal(size=sizes[0]), digits), np.round(rng.normal(size=sizes[1]) - 0.5, digits)
    found = difference([(a.tolist(), b.tolist())])
    for alternative, p in (("less", found.p_lower), ("greater", found.p_higher)):
        if rounded and sum(sizes) > 10:
            expected, slack = scipy.stats.mannwhitneyu(b, a, alternative=alternative).pvalue, 0.02
        elif rounded:
            method = scipy.stats.PermutationMethod(n_resamples=10_000)
            expected, slack = scipy.stats.mannwhitneyu(b, a, alternative=alternative, method=method).pvalue, 1e-9
        else:
            expected, slack = scipy.stats.mannwhitneyu(b, a, alternative=alternative, method="exact").pvalue, 1e-9
        assert p == pytest.approx(expected, abs=slack)


@pytest.mark.parametrize("digits", [9, 0], ids=["distinct", "ties"])
def test_long_series_take_scipys_normal_limit(digits: int) -> None:
    rng = np.random.default_rng(4)
    a, b = np.round(rng.normal(size=300), digits), np.round(rng.normal(size=200) - 0.1, digits)
    expected = scipy.stats.mannwhitneyu(b, a, alternative="less").pvalue
    assert difference([(a.tolist(), b.tolist())]).p_lower == pytest.approx(expected, rel=1e-6)


def test_three_below_three_decide_and_two_below_two_do_not() -> None:
    assert significant(difference([([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])]).p_lower)
    assert difference([([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])]).lower is True
    assert difference([([4.0, 5.0], [1.0, 2.0])]).lower is None
    assert least_p([([4.0, 5.0], [1.0, 2.0])]) == pytest.approx(1 / 3)


def test_strata_add_up_where_each_alone_is_unsure() -> None:
    strata = [([base * 1.1, base * 1.11], [base, base * 1.01]) for base in (10.0, 20.0, 50.0)]
    assert [difference([stratum]).lower for stratum in strata] == [None, None, None]
    together = difference(strata)
    assert together.lower is True
    assert together.delta == -1.0
    assert together.p_lower == pytest.approx((1 / 6) ** 3)
    assert together.ratio is not None
    assert together.ratio.low <= together.ratio.value < 0.92


def test_a_small_difference_is_none_however_sure_the_test() -> None:
    a = [100 + i / 100 for i in range(20)]
    b = [99.5 + i / 100 for i in range(20)]
    found = difference([(a, b)])
    assert found.p < 1e-6
    assert found.lower is False


def test_series_with_zeros_have_a_shift_and_no_ratio() -> None:
    found = difference([([0.0, 0.0, 0.0, 0.1], [30.0, 31.0, 32.0, 33.0])])
    assert found.ratio is None
    assert found.shift.value == pytest.approx(31.5)
    assert found.lower is False


@settings(max_examples=40)
@given(a=values, b=values)
def test_the_test_is_antisymmetric(a: list[float], b: list[float]) -> None:
    one, other = difference([(a, b)]), difference([(b, a)])
    assert one.delta == -other.delta
    assert one.p_lower == pytest.approx(other.p_higher)
    assert one.p_lower + one.p_higher >= 1 - 1e-9
    assert not (one.lower and other.lower)


def test_no_values_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="no values"):
        difference([([1.0], [])])


def test_holm_raises_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.9, 0.8]) == pytest.approx((1.0, 1.0))
    assert holm([]) == ()


@settings(max_examples=50)
@given(of=st.integers(1, 60), data=st.data())
def test_a_sign_test_is_the_binomial_one(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    expected = scipy.stats.binomtest(hits, of, alternative="greater").pvalue
    assert sign_chance(hits, of) == pytest.approx(expected)


@settings(max_examples=30)
@given(
    a=st.lists(st.floats(1, 100), min_size=5, max_size=8, unique=True),
    b=st.lists(st.floats(101, 300), min_size=5, max_size=8, unique=True),
)
def test_a_rank_test_of_two_series_is_the_exact_one(a: list[float], b: list[float]) -> None:
    lower, higher = rank_chances(a, b)
    for found, side in ((lower, "less"), (higher, "greater")):
        assert found == pytest.approx(scipy.stats.mannwhitneyu(b, a, alternative=side, method="exact").pvalue)

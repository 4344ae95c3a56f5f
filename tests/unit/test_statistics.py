from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigts.experiments.statistics import Middle, bootstrap, change, middle, trend, within

values = st.lists(st.floats(0.001, 1e4, allow_nan=False), min_size=2, max_size=30)


def around(median: float, half: float, n: int = 5) -> Middle:
    return Middle(n, median, half, median, median - half, median + half)


def test_a_single_value_has_no_interval() -> None:
    found = middle([4.7])
    assert found == Middle(1, 4.7, None, 4.7, None, None)
    assert found.bounds == (pytest.approx(4.465), pytest.approx(4.935))


def test_identical_values_have_an_interval_without_width() -> None:
    assert middle([4.7] * 5) == Middle(5, pytest.approx(4.7), 0.0, 4.7, 4.7, 4.7)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        middle([])


@settings(deadline=None, max_examples=30)
@given(values=values, seed=st.integers(0, 2**32))
def test_the_interval_holds_the_median_within_the_range_whatever_the_order(values: list[float], seed: int) -> None:
    low, high = bootstrap(values, seed)
    found = middle(values, seed)
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
        (Middle(1, 95, None, 95, None, None), Middle(1, 92, None, 92, None, None), "unclear"),
        (Middle(1, 95, None, 95, None, None), Middle(1, 70, None, 70, None, None), "falls"),
    ],
)
def test_a_trend_needs_intervals_that_lie_apart(first: Middle, last: Middle, expected: str) -> None:
    assert trend(first, last) == expected


def test_within_allows_its_ends_and_change_is_relative() -> None:
    assert within(1.0, 1.0, 1.0)
    assert not within(1.1, 0.0, 1.0)
    assert change(10.0, 9.0) == pytest.approx(-0.1)
    assert change(0.0, 9.0) == 0.0

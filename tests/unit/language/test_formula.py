"""Formulas of a file: what they give, and what they cannot be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.language.formula import formula
from minigts.language.units import convert, number_of


def test_mathis_gives_bytes_a_second() -> None:
    written = formula("0.75 * mss / (rtt * sqrt(p))")
    assert written.names == ("mss", "rtt", "p")
    assert written.value({"mss": 1448.0, "rtt": 0.1, "p": 0.01}) == pytest.approx(108_600)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2 + 3 * 4", 14),
        ("-2 ** 2", -4),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("log2(8) + log10(100) + log(exp(1)) + abs(-1)", 7),
        ("  (1 + 1)  ", 2),
        (7, 7),
        ("1e3 / 8", 125),
        ("2." + "0" * 298, 2),
    ],
)
def test_arithmetic(written: object, value: float) -> None:
    assert formula(written).value({}) == pytest.approx(value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "no formula of 1 to 300 characters"),
        ("1 +", "is no formula: invalid syntax"),
        ("x" * 301, "no formula of 1 to 300 characters"),
        ("+".join("a" * 100), "parts; at most 120 are possible"),
        ("__import__('os').system('true')", "is not possible|no function"),
        ("rtt.real", "'rtt.real' is not possible in a formula"),
        ("[1][0]", "is not possible in a formula"),
        ("'a' * 3", "is not possible in a formula"),
        ("1 if p else 2", "is not possible in a formula"),
        ("True", "is not possible in a formula"),
        ("1j", "is not possible in a formula"),
        ("(lambda: 1)()", "is not possible|no function"),
        ("sqr(2)", "no function 'sqr'; did you mean 'sqrt'"),
        ("sqrt(1, 2)", "sqrt takes one number"),
        ("max(1)", "max takes two numbers or more"),
        ("max(*a)", "is not possible|takes two"),
        ("1 // 2", "is not possible in a formula"),
        ("a := 1", "is no formula"),
        ("9" * 300 + "0", "no formula of 1"),
        ("1e999", "too large"),
        ("(" * 150 + "1" + ")" * 149, "is no formula"),
        (None, "no formula of 1 to 300"),
        ("\x00", "is no formula"),
    ],
)
def test_what_is_no_formula(written: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        formula(written)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("1 / p", "it divides by 0"),
        ("sqrt(p - 1)", "has no value here"),
        ("9.0 ** 9 ** 9 ** 9", "has no value here"),
        ("exp(10000)", "has no value here"),
        ("(p - 8) ** 0.5", "has no value here"),
        ("log(p)", "has no value here"),
    ],
)
def test_a_formula_without_a_value_says_why(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        formula(written).value({"p": 0.0})


@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_one_error(text: str) -> None:
    try:
        written = formula(text)
        value = written.value(dict.fromkeys(written.names, 0.5))
    except ValueError:
        return
    assert math.isfinite(value)


@pytest.mark.parametrize(
    ("value", "source", "target", "found"),
    [
        (125_000.0, "B/s", "Mbit/s", 1.0),
        (0.02, "s", "ms", 20.0),
        (0.5, "1", "%", 50.0),
        (0.5, "1", "", 0.5),
        (1.0, "B/s", "ms", None),
        (1.0, "s", "pages", None),
    ],
)
def test_units_of_one_kind_are_converted(value: float, source: str, target: str, found: float | None) -> None:
    assert convert(value, source, target) == (found if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("written", "value"),
    [("64KiB", 65536), ("10mbit", 1.25e6), ("20ms", 0.02), ("1%", 0.01), ("9", 9), ("3packets", 3), ("2min", 120)],
)
def test_what_varies_as_a_number(written: str, value: float) -> None:
    assert number_of(written) == pytest.approx(value)
    assert math.isnan(number_of("cubic"))

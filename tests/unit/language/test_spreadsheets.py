"""What a spreadsheet would work out is text in tables, and figures stay as they are."""

from __future__ import annotations

import pytest

from minigts.language.spreadsheets import no_formula
from minigts.results import tables


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-cmd", "'-cmd"),
        ("\uff1d1", "'\uff1d1"),
        ("a;=1", "a;'=1"),
        ("a|+1", "a|'+1"),
        ("a\t@x", "a\t'@x"),
        ("x = 1; y, -3 ms", "x = 1; y, -3 ms"),
        ("", ""),
    ],
)
def test_a_formula_is_made_text(text: str, shown: str) -> None:
    assert no_formula(text) == shown
    assert no_formula(text, numbers=True) == shown


@pytest.mark.parametrize("number", ["-3.5", "+1", "-1e-05", "0", "17.7", "-.5"])
def test_a_number_of_a_measurement_stays_one(number: str) -> None:
    assert no_formula(number, numbers=True) == number
    assert tables.text(("value",), [{"value": number}]) == f"value\n{number}\n"


def test_what_a_program_on_a_host_says_is_no_formula() -> None:
    assert tables.text(("error",), [{"error": "=cmd|x"}]) == "error\n'=cmd|x\n"

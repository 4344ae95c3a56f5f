"""Numbers and spans as people read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minigts.fidelity.certificate import CertificateRow, _loss_row
from minigts.language.figures import digits, signed_figure, span
from minigts.report import phrasing
from minigts.topology.read.load import parse

PACKAGE = Path(phrasing.__file__).parents[1]
WRITES_FOR_PROGRAMS = {"results/tables.py", "lessons/evidence.py"}
"""Columns of a table and the evidence of a lesson are read back as numbers, whose exponent is right."""


@pytest.mark.parametrize(
    ("value", "count", "text"),
    [
        (100, 2, "100"),
        (95.7, 2, "96"),
        (99.96, 3, "100"),
        (999.7, 3, "1000"),
        (9598, 3, "9598"),
        (0.2143, 3, "0.214"),
        (0.00001234, 3, "0.0000123"),
        (94.0, 3, "94"),
        (0, 3, "0"),
        (-1234.5, 3, "-1234"),
        (100_000, 6, "100000"),
        (12_345_678, 6, "12345678"),
    ],
)
def test_no_figure_has_an_exponent(value: float, count: int, text: str) -> None:
    assert digits(value, count) == text


def test_a_change_has_its_sign() -> None:
    assert [signed_figure(1200), signed_figure(-0.5), signed_figure(0)] == ["+1200", "-0.5", "+0"]


def test_a_span_of_one_figure_is_that_figure() -> None:
    assert span("100.0", "100.0") == "100.0"
    assert span("96", "100") == "96 to 100"


def test_a_loss_of_everything_is_a_hundred_per_cent() -> None:
    plan = parse("name: pair\nhosts: {a: {}, b: {}}\nlinks: [{ends: [a, b], delay: 1ms}]\n", "made up")
    row = _loss_row(plan, "a-b", "", 0.0, 120, 120, 1.0)
    assert "120 probes: 96 to 100 %, 99% sure" in row.note


def test_a_tolerance_of_a_fast_link_is_written_out() -> None:
    row = CertificateRow(
        subject="a-b", quantity="TCP", unit="Mbit/s", declared=95_000, measured=95_100, tolerance=1900, ok=True
    )
    assert row.sentence() == "95100 Mbit/s, declared 95000 ± 1900 Mbit/s: ok"


@pytest.mark.parametrize("module", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_that_is_read_is_written_with_few_digits_and_an_exponent(module: Path) -> None:
    """`{value:.3g}` says 1e+03 of 999.7."""
    if str(module.relative_to(PACKAGE)) not in WRITES_FOR_PROGRAMS:
        assert re.findall(r":[+]?\.[1-5]g\}", module.read_text()) == []

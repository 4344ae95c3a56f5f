"""Whether one cell lies above or below another: the Wilcoxon–Mann–Whitney test, as docs/decisions/0010-statistics.md
says; with fewer than three samples, which no test can use, whether their intervals lie apart."""

from __future__ import annotations

from minigts.experiments.cells import Cell
from minigts.statistics import NOTICEABLE, Difference, Trend, change, difference, sure, trend

ENOUGH = 3
"""Three samples below three others decide at 5 %; two below two never do."""


def direction(first: Cell, last: Cell) -> Trend:
    """Whether what was measured falls or rises from `first` to `last`, by 1 % at least, and the test is sure of it."""
    found = _test(first, last)
    if found is None:
        return trend(first.middle, last.middle)
    if abs(change(first.middle.median, last.middle.median)) < NOTICEABLE:
        return "level"
    return "falls" if sure(found.p_lower) else "rises" if sure(found.p_higher) else "unclear"


def ratio_percent(above: Cell, below: Cell) -> tuple[float, float, float] | None:
    """The bootstrap interval of what `above` is of `below`, with the ratio between its ends; None without enough."""
    found = _test(below, above)
    return (100 * found.ratio.low, 100 * found.ratio.value, 100 * found.ratio.high) if found and found.ratio else None


def in_words(first: Cell, last: Cell) -> str:
    """The test's name, chance and effect, to end a sentence with; nothing where it was not made."""
    found = _test(first, last)
    if found is None:
        return ""
    p = min(found.p_lower, found.p_higher)
    chance = f"= {p:.3f}" if p >= 0.001 else "< 0.001"
    return f"; Wilcoxon–Mann–Whitney, one-sided p {chance}, Cliff's δ = {found.delta:+.2f}"


def _test(first: Cell, last: Cell) -> Difference | None:
    if min(len(first.values), len(last.values)) < ENOUGH:
        return None
    return difference([(first.values, last.values)], seed=1)

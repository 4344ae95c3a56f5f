"""What is judged: the samples of one quantity between two hosts, and how two such cells compare.

Whether one lies below another is decided by the Wilcoxon–Mann–Whitney test, as docs/decisions/0010-statistics.md says;
with fewer than three samples, which no test can use, by whether their intervals lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from minigts.judge.statistics import NOTICEABLE, Difference, Estimate, Trend, change, difference, significant, trend
from minigts.judge.tolerances import Tolerance

ENOUGH = 3
"""Three samples below three others decide at 5 %; two below two never do."""


@dataclass(frozen=True, kw_only=True)
class PathCell:
    """All good samples of one quantity between two hosts, in `unit`, and their `estimate`.

    `predicted` is what the plan promises, in the same unit; None where it promises nothing.
    """

    source: str
    target: str
    hops: int
    kind: Literal["path", "segment"] = "path"
    unit: str
    estimate: Estimate
    predicted: float | None = None
    values: tuple[float, ...] = ()
    """The samples that `estimate` is of."""
    p99: float | None = None
    """Of what was measured once: 99 % of its own exchanges were as quick."""


def measured_once(value: float, tolerance: Tolerance) -> Estimate:
    """Of a single measurement whose tolerance stands for the interval that it cannot have."""
    return Estimate(1, value, None, value, value - tolerance.of(value), value + tolerance.of(value))


def direction(first: PathCell, last: PathCell) -> Trend:
    """Whether what was measured falls or rises from `first` to `last`: by 1 % at least, and the test is sure of it."""
    test = _test(first, last)
    if test is None:
        return trend(first.estimate, last.estimate)
    if abs(change(first.estimate.median, last.estimate.median)) < NOTICEABLE:
        return "level"
    return "falls" if significant(test.p_lower) else "rises" if significant(test.p_higher) else "unclear"


def ratio_percent(above: PathCell, below: PathCell) -> tuple[float, float, float]:
    """Low end, value and high end of what the median of `above` is of that of `below`, in per cent.

    The interval is the bootstrap's; with too few samples to draw from, it is that of both intervals' ends.
    """
    test = _test(below, above)
    if test is not None and test.ratio is not None:
        return 100 * test.ratio.low, 100 * test.ratio.value, 100 * test.ratio.high
    (low, high), (below_low, below_high) = above.estimate.bounds, below.estimate.bounds
    ratio = _percent(above.estimate.median, below.estimate.median)
    return _percent(low, below_high), ratio, _percent(high, below_low)


def evidence(first: PathCell, last: PathCell) -> str:
    """The test's name, chance and effect, to end a sentence with; nothing where it was not made."""
    test = _test(first, last)
    if test is None:
        return ""
    p = min(test.p_lower, test.p_higher)
    chance = f"= {p:.3f}" if p >= 0.001 else "< 0.001"
    return f"; Wilcoxon–Mann–Whitney, one-sided p {chance}, Cliff's δ = {test.delta:+.2f}"


def by_hops(cells: Iterable[PathCell]) -> list[PathCell]:
    """The whole paths, the shortest first."""
    return sorted((cell for cell in cells if cell.kind == "path"), key=lambda cell: cell.hops)


def ends(cells: Sequence[PathCell]) -> tuple[PathCell, PathCell] | None:
    """The paths with the fewest and the most hops; None when all have the same."""
    ordered = by_hops(cells)
    return (ordered[0], ordered[-1]) if ordered and ordered[0].hops < ordered[-1].hops else None


def plural(count: int, one: str) -> str:
    """`1 hop`, `2 hops`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _test(first: PathCell, last: PathCell) -> Difference | None:
    if min(len(first.values), len(last.values)) < ENOUGH:
        return None
    return difference([(first.values, last.values)], seed=1)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else math.inf

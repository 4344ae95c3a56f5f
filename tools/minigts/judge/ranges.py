"""bounded, compared, drops-past-mtu, falls and rises: one figure against a range, or against another figure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from minigts.judge.cells import PathCell, direction, ratio_percent
from minigts.judge.verdicts import Word


@dataclass(frozen=True)
class Range:
    """`under 30 ms`, `over 95 %`, `90 to 100 %`: an interval, its unit, and how it was written."""

    low: float
    high: float
    unit: str
    written: str

    @property
    def decimals(self) -> int:
        """Digits behind the point, of the number that has the most: what is held against it needs as many."""
        return max((len(digits) for digits in re.findall(r"\.(\d+)", self.written)), default=0)

    def holds(self, low: float, high: float) -> Word:
        """An interval wholly inside held, one wholly outside failed."""
        if low >= self.low and high <= self.high:
            return "held"
        return "failed" if high < self.low or low > self.high else "undecided"


def bounded(cell: PathCell, range_: Range) -> Word:
    """The figure within the range, which is in the figure's unit."""
    return range_.holds(*cell.estimate.bounds)


def compared(cell: PathCell, other: PathCell, range_: Range) -> Word:
    """What `cell` is of `other` within the range, which is in per cent. drops-past-mtu is this for two datagrams."""
    low, _, high = ratio_percent(cell, other)
    return range_.holds(low, high)


def goes(word: Literal["falls", "rises"], first: PathCell, last: PathCell) -> Word:
    """From `first` to `last` it falls, or rises."""
    trend = direction(first, last)
    if trend == "unclear":
        return "undecided"
    return "held" if trend == word else "failed"

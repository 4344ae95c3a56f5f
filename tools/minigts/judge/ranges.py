"""bounded, compared, drops-past-mtu, falls and rises: one figure against a range, or against another figure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from minigts.judge.samples import PathSamples, directed_trend, median_within, ratio_within
from minigts.judge.verdicts import Tested, Word


@dataclass(frozen=True)
class Range:
    """`under 30 ms`, `over 95 %`, `90 to 100 %`: an interval, its unit, and how it was written."""

    low: float
    high: float
    unit: str
    written: str

    @property
    def decimals(self) -> int:
        """The most decimals of any number in the range; a figure compared with it is printed with as many."""
        return max((len(digits) for digits in re.findall(r"\.(\d+)", self.written)), default=0)

    def share(self, value: float) -> float:
        """The share of the range that the value uses: 0 in the middle, 1 at a limit, more outside. Of a range with one
        limit it is the value's ratio to the limit, or the limit's to the value."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            half = (self.high - self.low) / 2
            return abs(value - self.low - half) / half if half else (0.0 if value == self.low else math.inf)
        below, above = (value, self.high) if math.isfinite(self.high) else (self.low, value)
        if above <= 0:
            return math.inf if below > above else 1.0 if below == above else 0.0
        return max(0.0, below / above)


def compare_with_range(cell: PathSamples, range_: Range) -> Tested:
    """Whether the figure lies within the range, which is in the figure's unit."""
    return median_within(cell, range_.low, range_.high)


def compare_ratio(cell: PathSamples, other: PathSamples, range_: Range) -> Tested:
    """Whether the ratio of `cell` to `other` lies within the range, which is in per cent. drops-past-mtu uses this for
    two sizes of datagrams."""
    return ratio_within(cell, other, range_.low / 100, range_.high / 100)


def trend_is(word: Literal["falls", "rises"], first: PathSamples, last: PathSamples) -> Tested:
    """Whether the figure falls, or rises, from `first` to `last`."""
    trend, p = directed_trend(first, last)
    if trend == "unclear":
        return Tested("undecided", p)
    found: Word = "held" if trend == word else "failed"
    return Tested(found, p)

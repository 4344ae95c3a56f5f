"""A trace of mahimahi (mm-link), and how a plan has it. Pure.

Each line of such a file is a millisecond in which 1500 bytes may be delivered, and behind the last line the file begins
again. A plan has the lines in runs: `10` is an opportunity 10 ms after the one before, `10x3` are three at once, and
`10x3*100` are a hundred times that. The clock plays them (provision/clock/src/trace.rs).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from minigts.language.problems import quote

PACKET_BYTES = 1500
"""The packet that an opportunity delivers (mm-link(1))."""
LATEST_MS = 86_400_000
"""The latest line of a trace: a day."""
MOST_RUNS = 2_000_000
INTERVAL_MS = 100
"""How long a rate lasts at the most that stands for opportunities where no clock plays them."""
_RUN = re.compile(r"([0-9]{1,10})(?:x([0-9]{1,10}))?(?:\*([0-9]{1,10}))?", re.ASCII)


def read(text: str) -> str:
    """The runs of a file's lines. Raises ValueError, with the number of the line where one is wrong."""
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word.isascii() or not word.isdigit() or len(word) > 9:
            raise ValueError(f"line {number}: {quote(line[:40])} is no millisecond, as mahimahi's traces have")
        at_ms = int(word)
        if at_ms > LATEST_MS or (lines and at_ms < lines[-1]):
            raise ValueError(f"line {number}: {at_ms} ms is before the line above, or after a day")
        lines.append(at_ms)
    if not lines:
        raise ValueError("has no points")
    if not lines[-1]:
        raise ValueError("ends at 0 ms: the last line of a trace says when it begins again")
    return _in_runs(lines)


def _in_runs(lines: Sequence[int]) -> str:
    counted = [(at_ms, len(list(same))) for at_ms, same in groupby(lines)]
    apart = ((at_ms - before, count) for (before, _), (at_ms, count) in pairwise([(0, 0), *counted]))
    return " ".join(_run(*run, len(list(same))) for run, same in groupby(apart))


def _run(apart_ms: int, count: int, moments: int) -> str:
    return f"{apart_ms}{f'x{count}' if count > 1 else ''}{f'*{moments}' if moments > 1 else ''}"


def _parsed(runs: str) -> Iterator[tuple[int, int, int]]:
    for word in runs.split():
        found = _RUN.fullmatch(word)
        if found is None:
            raise ValueError(f"{quote(word[:40])} is no run of a trace")
        apart_ms, count, moments = found.groups(default="1")
        yield int(apart_ms), int(count), int(moments)


@lru_cache(maxsize=256)
def totals(runs: str) -> tuple[int, int]:
    """How many opportunities a trace has, and its period in ms."""
    several = [*_parsed(runs)]
    return sum(count * moments for _, count, moments in several), sum(apart * moments for apart, _, moments in several)


def mean_mbit(runs: str) -> float:
    """The rate of packets of full size: 60 in a millisecond are 720 Mbit/s."""
    count, period_ms = totals(runs)
    return count * PACKET_BYTES * 8 / period_ms / 1000


def name_of(runs: str) -> str:
    """A name that differs with the trace, for the clock; empty for none."""
    return hashlib.sha256(runs.encode()).hexdigest()[:16] if runs else ""


def short_text(runs: str) -> str:
    """`720 Mbit/s, 60 packets in 0.001 s`"""
    if not runs:
        return "none"
    count, period_ms = totals(runs)
    return f"{mean_mbit(runs):.6g} Mbit/s, {count} packets in {period_ms / 1000:g} s, {name_of(runs)[:8]}"


def intervals(runs: str) -> tuple[list[tuple[float, float]], float]:
    """For where no clock plays a trace: the beginning of each interval in s and its mean rate in Mbit/s, and the period
    in s. Intervals are equally long, and no longer than INTERVAL_MS."""
    _, period_ms = totals(runs)
    number = -(-period_ms // INTERVAL_MS)
    counts = [0] * number
    at_ms = 0
    for apart_ms, count, moments in _parsed(runs):
        for _ in range(moments):
            at_ms += apart_ms
            counts[max(0, -(-at_ms * number // period_ms) - 1)] += count
    length_ms = period_ms / number
    rates = (count * PACKET_BYTES * 8 / length_ms / 1000 for count in counts)
    return [(index * length_ms / 1000, rate) for index, rate in enumerate(rates)], period_ms / 1000


@lru_cache(maxsize=256)
def _checked(runs: str) -> str:
    if not runs:
        return runs
    if runs.count(" ") >= MOST_RUNS:
        raise ValueError("a trace of too many runs")
    count, period_ms = totals(runs)
    if not 0 < period_ms <= LATEST_MS or not 0 < count < 1 << 32 or "x0" in runs or "*0" in runs:
        raise ValueError("a trace has opportunities, and is no longer than a day")
    return runs


Runs: TypeAlias = Annotated[str, AfterValidator(_checked)]
"""A trace as a plan has it; empty: none."""

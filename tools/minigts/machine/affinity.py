"""Pins processes to processors (sched_setaffinity(2))."""

from __future__ import annotations

import os


def hold_to_one(pid: int, number: int) -> None:
    """Pin the process `pid` (0: this one), and all that it starts from then on, to one of the processors that this
    process may use: the one at index `number`, modulo their count. Raises OSError."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {usable[number % len(usable)]})

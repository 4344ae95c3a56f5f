"""Which of this machine's processors a process runs on (sched_setaffinity(2))."""

from __future__ import annotations

import os


def hold_to_one(pid: int, number: int) -> None:
    """Hold a process, 0 for this one, to one of those that this one may use, and what it starts from then on, too;
    numbers go round them. Raises OSError."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {usable[number % len(usable)]})

"""Whether the user has broken this program off: from then on nobody waits long for what may never come.

A signal is the whole process's, and so is this. The standard library's handler raises KeyboardInterrupt in the main
thread alone; what other threads wait for, and what is cleaned up afterwards, goes by `seconds_since`.
"""

from __future__ import annotations

import time

_moments: list[float] = []


def note() -> None:
    """It is broken off now, unless it has been already."""
    if not _moments:
        _moments.append(time.monotonic())


def seconds_since() -> float | None:
    """How long ago it was broken off, by this machine's clock; None as long as it is not."""
    return time.monotonic() - _moments[0] if _moments else None

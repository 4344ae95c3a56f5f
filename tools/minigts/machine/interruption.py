"""Whether the user has interrupted this program; from then on all waits are short.

A signal concerns the whole process, but Python raises KeyboardInterrupt only in the main thread. Waits in other threads
and in the clean-up afterwards ask `seconds_since`.
"""

from __future__ import annotations

import time

_moments: list[float] = []


def note() -> None:
    """Note that the program is interrupted now, unless it was before."""
    if not _moments:
        _moments.append(time.monotonic())


def seconds_since() -> float | None:
    """Seconds since the interruption, by this machine's clock; None if there was none."""
    return time.monotonic() - _moments[0] if _moments else None

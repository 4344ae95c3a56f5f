"""Leaves faults of a failing seed out, as long as it still fails in the same way.

Each fault is left out in turn, the last one first, until none can be left out any more. What remains suffices for the
failure, and none of it can be left out alone. Faults that are left out change what comes after them, so a smaller
set may fail that this search does not find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[tuple[int, ...]], bool]
"""Whether the seed fails in the same way with only these faults, by their numbers."""


def shrunk(numbers: Sequence[int], fails: Fails) -> tuple[int, ...]:
    """The numbers of the faults that remain. The seed is known to fail with all."""
    if fails(()):
        return ()
    left = tuple(numbers)
    again = len(left) > 1
    while again:
        again = False
        for number in reversed(left):
            fewer = tuple(each for each in left if each != number)
            if fewer and fails(fewer):
                left, again = fewer, True
        again &= len(left) > 1
    return left

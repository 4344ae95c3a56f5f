"""Leaves faults of a failing seed out, and acts of its test, as long as it still fails in the same way.

Each is left out in turn, the last one first, until none can be left out any more. What remains suffices for the
failure, and none of it can be left out alone. Then each is made shorter, by half as long as the seed fails. What
is left out or shorter change what comes after them, so less may fail that this search does not find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrunk(parts: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """The parts, faults or acts, that remain; `fails` says whether the seed fails in the same way with only these. It
    is known to fail with all."""
    if fails(()):
        return ()
    left = tuple(parts)
    again = len(left) > 1
    while again:
        again = False
        for part in reversed(left):
            fewer = tuple(each for each in left if each != part)
            if fewer and fails(fewer):
                left, again = fewer, True
        again &= len(left) > 1
    return left


SHORTEST_S = 0.1
"""A fault that lasts no longer than twice this is not made shorter."""
FailsWith = Callable[[Mapping[int, float]], bool]
"""Whether the seed fails in the same way when faults last so long, in seconds by their numbers."""


def shorten_faults(lasting: Mapping[int, float], fails: FailsWith) -> dict[int, float]:
    """How long each of the faults has to last, in seconds: half of it is too short, or so short that it was not tried.
    The seed is known to fail with `lasting`."""
    found = dict(lasting)
    for number in sorted(found, reverse=True):
        while found[number] > 2 * SHORTEST_S:
            shorter = {**found, number: round(found[number] / 2, 6)}
            if not fails(shorter):
                break
            found = shorter
    return found

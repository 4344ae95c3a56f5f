"""Draws that are the same on every machine and in every version of Python, which promises that of `random()` alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """The draws of a name."""

    def __init__(self, name: str) -> None:
        self._numbers = random.Random(f"arena/{name}")

    def pick(self, members: Sequence[T]) -> T:
        return members[int(self._numbers.random() * len(members))]

    def mix(self, members: Sequence[T]) -> list[T]:
        """All members in a drawn order."""
        places = sorted((self._numbers.random(), number) for number in range(len(members)))
        return [members[number] for _, number in places]

"""What becomes of a claim or an expectation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Word = Literal["held", "failed", "undecided"]
FORMER_WORDS = {"did not": "failed", "did not hold": "failed"}
"""What results folders of before called a verdict."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and a sentence with the figures it rests on."""

    word: Word
    detail: str

    @property
    def ok(self) -> bool | None:
        """True and False for held and failed, None for undecided."""
        return {"held": True, "failed": False, "undecided": None}[self.word]


def together(words: Sequence[Word]) -> Word:
    """Of several verdicts that must all hold: one that failed decides, then one that is undecided."""
    return "failed" if "failed" in words else "undecided" if "undecided" in words else "held"


def current(word: object) -> object:
    """A stored verdict in today's words; what is no word of before stays as it is."""
    return FORMER_WORDS.get(word, word) if isinstance(word, str) else word

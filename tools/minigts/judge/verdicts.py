"""What becomes of a claim or an expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from minigts.judge.statistics import significant

Word = Literal["held", "failed", "undecided", "vacuous"]
"""vacuous: under these settings it could not have come out otherwise, so it says nothing."""
WORDS: tuple[Word, ...] = ("held", "failed", "undecided", "vacuous")
SHOWN: Mapping[Word, str] = {
    "held": "held",
    "failed": "failed",
    "undecided": "undecided",
    "vacuous": "vacuous here",
}
FORMER_WORDS = {"did not": "failed", "did not hold": "failed"}
"""What results folders of before called a verdict."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and a sentence with the figures it rests on. `p` is the chance of what was measured were the contrary
    true; None where no test was made."""

    word: Word
    detail: str
    p: float | None = None

    @property
    def ok(self) -> bool | None:
        """True and False for held and failed, None for what says neither."""
        return {"held": True, "failed": False}.get(self.word)


class Tested(NamedTuple):
    """What becomes of one condition that a claim makes; `p` as in `Judgement`."""

    word: Word
    p: float | None = None


def together(words: Sequence[Word]) -> Word:
    """Of several verdicts that must all hold: one that failed decides, then one undecided, then one that held."""
    return next((word for word in ("failed", "undecided", "held", "vacuous") if word in words), "held")


def all_of(tested: Sequence[Tested]) -> Tested:
    """Of several conditions that must all hold. They do when each does, so the largest chance of error is that of all
    (Berger, Technometrics 24, 1982). They do not when one does not, which comes by chance the sooner the more there
    are: its chance is multiplied by their number (Bonferroni)."""
    word = together([each.word for each in tested])
    chances = [each.p for each in tested if each.word == word and each.p is not None]
    if word != "failed":
        return Tested(word, max(chances, default=None))
    if any(each.word == "failed" and each.p is None for each in tested):
        return Tested("failed")
    chance = min(1.0, len(tested) * min(chances))
    return Tested("failed" if significant(chance) else "undecided", chance)


def current(word: object) -> object:
    """A stored verdict in today's words; what is no word of before stays as it is."""
    return FORMER_WORDS.get(word, word) if isinstance(word, str) else word

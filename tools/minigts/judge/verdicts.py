"""The verdicts on claims and expectations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from minigts.judge.statistics import significant

Word = Literal["held", "failed", "undecided", "vacuous"]
"""A claim is vacuous when it could not have come out otherwise under these settings, so its verdict says nothing."""
WORDS: tuple[Word, ...] = ("held", "failed", "undecided", "vacuous")
SHOWN: Mapping[Word, str] = {
    "held": "held",
    "failed": "failed",
    "undecided": "undecided",
    "vacuous": "vacuous here",
}
EXPLAINED = "failed, explained"
"""A law that failed, and whose file says why. It stands as failed."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and a sentence with the figures it rests on. `p` is the p value against the contrary; None where no
    test was made. `used` is the largest share of the claim's range that a figure uses (`Range.share`); None without a
    range."""

    word: Word
    detail: str
    p: float | None = None
    used: float | None = None

    @property
    def ok(self) -> bool | None:
        """True for held, False for failed, None for the other verdicts."""
        return {"held": True, "failed": False}.get(self.word)


class Tested(NamedTuple):
    """The verdict on one condition of a claim; `p` as in `Judgement`."""

    word: Word
    p: float | None = None


def combine(words: Sequence[Word]) -> Word:
    """The verdict on conditions that must all hold: failed if one failed, else undecided if one is undecided."""
    return next((word for word in ("failed", "undecided", "held", "vacuous") if word in words), "held")


def all_of(tested: Sequence[Tested]) -> Tested:
    """The verdict and p value of several conditions that must all hold. All hold when each does, so the largest p value
    counts (Berger, Technometrics 24, 1982). One failure decides, and becomes likelier by chance the more conditions
    there are, so the smallest p value is multiplied by their number (Bonferroni)."""
    word = combine([each.word for each in tested])
    chances = [each.p for each in tested if each.word == word and each.p is not None]
    if word != "failed":
        return Tested(word, max(chances, default=None))
    if any(each.word == "failed" and each.p is None for each in tested):
        return Tested("failed")
    chance = min(1.0, len(tested) * min(chances))
    return Tested("failed" if significant(chance) else "undecided", chance)


def verdict_line(word: Word, why: str) -> str:
    """The verdict on a law in words: one that failed is explained where its file says `why`."""
    return EXPLAINED if word == "failed" and why else SHOWN[word]

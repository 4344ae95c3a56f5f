"""Judges an answer by the lab's own state, and says what it has cost. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from pydantic import BaseModel, ConfigDict

from minigts.arena.expectations import Complaint
from minigts.lessons.breaks import LessonFault

DIGITS = 4
SHARES = ("detected", "located", "named", "mended")
"""What points are the mean of."""


class NamedFault(BaseModel):
    """A fault as an answer names it: its kind, and the host."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    where: str


class ArenaAnswer(BaseModel):
    """What somebody says of an incident: its faults; none says that nothing is wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    faults: tuple[NamedFault, ...] = ()


class ArenaScore(BaseModel):
    """How well an incident was handled. The four shares are from 0 to 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    detected: float
    """Whether the answer is right about anything being wrong at all."""
    located: float
    """The share of hosts that are right: of the faults, or of what was named, whichever are more."""
    named: float
    """The same of kinds."""
    mended: float
    """The share of the faults that have no effect any more; with none, whether all holds that held."""
    left: int
    """How many complaints of before there still are."""
    broken: int
    """How many complaints there are that were not there before."""
    calls: int
    lab_s: float
    """The lab's time from the ticket to the answer, in seconds."""
    points: float
    """The mean of the four shares."""
    solved: bool
    """Whether all is right, and nobody has anything to complain of."""


def score(
    faults: Sequence[LessonFault],
    answer: ArenaAnswer,
    *,
    lasting: Collection[LessonFault],
    before: Collection[Complaint],
    now: Sequence[Complaint],
    calls: int,
    lab_s: float,
) -> ArenaScore:
    """The score of an answer. `lasting` are the faults that have their effect still, `before` and `now` the complaints
    with the ticket and at the end."""
    known = {_about(each) for each in before}
    broken = sum(_about(each) not in known for each in now)
    shares = {
        "detected": float(bool(answer.faults) == bool(faults)),
        "located": _share([each.where for each in answer.faults], [each.hosts for each in faults]),
        "named": _share([each.what for each in answer.faults], [(each.kind.name,) for each in faults]),
        "mended": round(1 - len(lasting) / len(faults), DIGITS) if faults else float(not broken),
    }
    points = round(sum(shares.values()) / len(shares), DIGITS)
    return ArenaScore(
        **shares,
        left=len(now) - broken,
        broken=broken,
        calls=calls,
        lab_s=round(lab_s, 6),
        points=points,
        solved=points == 1 and not now,
    )


def _about(complaint: Complaint) -> tuple[object, ...]:
    return complaint.what, complaint.source, complaint.target, complaint.inside


def _share(given: Sequence[str], right: Sequence[Collection[str]]) -> float:
    """How many of the right words were given, of as many as are right or were given."""
    if not given and not right:
        return 1.0
    left = Counter(given)
    hits = 0
    for words in right:
        if found := next((word for word in words if left[word] > 0), None):
            left[found] -= 1
            hits += 1
    return round(hits / max(len(given), len(right)), DIGITS)

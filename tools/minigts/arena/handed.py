"""Grades the transcripts that students hand in. What a transcript says is the student's word; a replay is the lab's.

With `again` the calls are played once more in a new lab, the answer is judged there, and that score alone counts. So an
invented transcript is worth what its calls do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

from minigts.arena import families, scores, tournament, transcript
from minigts.arena.scores import ArenaScore
from minigts.arena.tournament import ReplayDifference
from minigts.arena.transcript import Transcript
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.language.problems import quote
from minigts.lessons.grades import NOT_YET, PASSED, GradeRow
from minigts.lessons.submissions import Handed

LONGEST_REPLAY_S = 900.0
"""How much of this machine's time the calls of a transcript may take."""
ReplayOf = Callable[[Transcript], tuple[Transcript, ReplayDifference | None]]
"""Plays the calls of a transcript in a new lab: its transcript, and where the two part."""


def replay(whole: Transcript) -> tuple[Transcript, ReplayDifference | None]:
    """A replay that ends. Raises MinigtsError for one that takes too long."""
    return tournament.replay(whole, lambda _: None, LONGEST_REPLAY_S)


def rows(handed: Handed, seeded: bool, play: ReplayOf | None = None) -> Iterator[GradeRow]:
    """A row for each transcript of one student. With `seeded` who plays has to be the name under which the work was
    handed in. Raises EnvironmentLacks when this machine cannot run a lab."""
    for place, content in handed.transcripts.items():
        try:
            whole = _parsed(content, place)
        except MinigtsError as error:
            yield GradeRow(handed.student, folder=place, wrong=str(error))
            continue
        yield _row(handed.student, place, whole, seeded, play)


def _parsed(content: bytes, place: str) -> Transcript:
    try:
        whole = transcript.parse(content.decode(), place)
    except UnicodeDecodeError:
        raise InputError(f"{place}: not UTF-8 text") from None
    families.parse(whole.ticket.incident)
    return whole


def _row(student: str, place: str, whole: Transcript, seeded: bool, play: ReplayOf | None) -> GradeRow:
    claimed = whole.end.score
    wrong = [*_lacks(claimed), *_contradictions(whole)]
    if seeded and whole.ticket.agent != student:
        wrong.append(f"seed: {quote(whole.ticket.agent)} has played, not {student}")
    verdict, shown, again = NOT_YET if wrong else PASSED, claimed, ""
    if play is not None:
        again, played, remarks = _again(whole, play)
        shown = played or claimed
        wrong += remarks
    return GradeRow(
        student=student,
        lesson=whole.ticket.incident,
        folder=place,
        seed=whole.ticket.agent,
        came_out=f"{shown.points:g} points, {shown.calls} calls, {shown.lab_s:g} s",
        verdict=verdict,
        again=again,
        wrong="; ".join(wrong),
        evidence=_digest(whole),
    )


def _lacks(found: ArenaScore) -> list[str]:
    """What is not right, by a score."""
    shares = {name: getattr(found, name) for name in scores.SHARES}
    complaints = {"left": found.left, "broken": found.broken}
    return [
        *(f"{name}: {share:g} of 1" for name, share in shares.items() if share != 1),
        *(f"complaints {name}: {number}" for name, number in complaints.items() if number),
    ]


def _contradictions(whole: Transcript) -> list[str]:
    """Where a transcript's score is not that of its answer."""
    incident = families.draw(*families.parse(whole.ticket.incident))
    claimed = whole.end.score
    right = scores.score(
        incident.faults, whole.end.answer, lasting=(), before=(), now=(), calls=len(whole.calls), lab_s=claimed.lab_s
    )
    named = ("detected", "located", "named", "calls")
    return [
        f"{name}: the score says {getattr(claimed, name):g}, and what is there is worth {getattr(right, name):g}"
        for name in named
        if getattr(claimed, name) != getattr(right, name)
    ]


def _again(whole: Transcript, play: ReplayOf) -> tuple[str, ArenaScore | None, list[str]]:
    """The verdict of a replay, its score, and what to say of it."""
    try:
        now, difference = play(whole)
    except EnvironmentLacks:
        raise
    except MinigtsError as error:
        return NOT_YET, None, [f"again: {' '.join(str(error).split())[:300]}"]
    found = now.end.score
    remarks = [] if found.solved else [f"again: {each}" for each in _lacks(found)]
    if difference is not None:
        remarks.append(
            f"again: line {difference.line} of the transcript comes out otherwise, as after an earlier check or an exec"
        )
    return PASSED if found.solved else NOT_YET, found, remarks


def _digest(whole: Transcript) -> str:
    """What two transcripts with the same calls have in common; empty where nothing was called."""
    calls = [(each.tool, each.arguments) for each in whole.calls]
    return hashlib.sha256(json.dumps(calls, sort_keys=True).encode()).hexdigest() if calls else ""

"""Plays incidents, each in a new lab of its own or in a fork of one, which is the same, and replays a transcript: the
same calls in another new lab."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import lab as labs
from minigts.arena import families, stage, transcript
from minigts.arena.families import Incident
from minigts.arena.play import Play
from minigts.arena.players import ArenaPlayer
from minigts.arena.transcript import Transcript
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.results.folder import inside, write
from minigts.session import bring_up


@contextmanager
def lab_of(incident: Incident, say: Progress, name: str | None = None) -> Iterator[Lab]:
    """A new lab of the incident's board, without its faults; at the end it is taken down. Without a name it has one
    that no lab of another process has."""
    lab = new_lab(incident, name or f"{incident.lab}-{os.getpid()}", say)
    try:
        yield lab
    finally:
        labs.down(lab)


def new_lab(incident: Incident, name: str, say: Progress) -> Lab:
    """The same, which stays. Raises InputError where a lab of that name is up, EnvironmentLacks."""
    ready = bring_up.ready(bring_up.Request(incident.plan, name=name))
    if not ready.is_new:
        raise InputError(f"lab {name} is there already: minigts down {name}")
    return bring_up.bring_up(ready, say, certified=False).lab


def play_incident(lab: Lab, incident: Incident, agent: str, player: ArenaPlayer, say: Progress) -> Transcript:
    """Play an incident in a lab of its board."""
    stage.make(lab, incident, agent, say)
    play = Play(lab)
    say(f"{incident.name}: {agent} plays")
    return play.answer(player(play))


def play_all(
    names: Sequence[str], agent: str, player: ArenaPlayer, into: Path, say: Progress, take: Callable[[Transcript], None]
) -> None:
    """Play incidents, those of a board one after the other, in forks of one lab. A transcript is a file in `into`; one
    that is there is not played again. `take` gets each."""
    incidents = [families.draw(*families.parse(name)) for name in names]
    for board in dict.fromkeys(each.board for each in incidents):
        with ExitStack() as stack:
            origin: Lab | None = None
            for incident in incidents:
                file = inside(into, file_name(incident.name, agent))
                if incident.board != board:
                    continue
                if not file.exists():
                    origin = origin or stack.enter_context(lab_of(incident, say))
                    with fork_of(origin) as lab:
                        write(file, play_incident(lab, incident, agent, player, say).text)
                take(transcript.read(file))


@contextmanager
def fork_of(origin: Lab) -> Iterator[Lab]:
    """A lab that goes on as that one does; at the end it is taken down."""
    lab = labs.fork(origin, labs.next_fork(origin.name))
    try:
        yield lab
    finally:
        labs.down(lab)


def file_name(name: str, agent: str) -> str:
    """`routes-7-scripted.jsonl`"""
    return f"{name.replace('/', '-')}-{agent}.jsonl"


@dataclass(frozen=True)
class ReplayDifference:
    """The first line in which a replay differs, and both lines there; one is empty where its transcript has ended."""

    line: int
    before: str
    now: str


def replay(
    before: Transcript, say: Progress, limit_s: float | None = None
) -> tuple[Transcript, ReplayDifference | None]:
    """Play the calls of a transcript in a new lab, and answer as it does. The version of minigts is not compared.

    With `limit_s`, of this machine's time for all calls and the answer, only in the main thread. Raises MinigtsError
    when they take longer."""
    incident = families.draw(*families.parse(before.ticket.incident))
    with lab_of(incident, say) as lab:
        stage.make(lab, incident, before.ticket.agent, say)
        play = Play(lab)
        with _within(limit_s):
            for each in before.calls:
                say(f"call {each.number} of {len(before.calls)}: {each.tool}")
                play.call(each.tool, each.arguments)
            now = play.answer(before.end.answer)
    return now, first_difference(before, now)


class _TooLong(BaseException):
    """No MinigtsError, which a call would take for its host's."""


@contextmanager
def _within(limit_s: float | None) -> Iterator[None]:
    def end(_signal: int, _frame: object) -> None:
        raise _TooLong

    if limit_s is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    except _TooLong:
        raise MinigtsError(f"its calls take more than {limit_s:g} s of this machine's time, and were ended") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def first_difference(before: Transcript, now: Transcript) -> ReplayDifference | None:
    """Where two transcripts part; None where they are the same bytes, but for the version of minigts."""
    same_version = Transcript(now.ticket.model_copy(update={"minigts": before.ticket.minigts}), now.calls, now.end)
    ours, theirs = before.text.splitlines(), same_version.text.splitlines()
    for number in range(max(len(ours), len(theirs))):
        pair = [lines[number] if number < len(lines) else "" for lines in (ours, theirs)]
        if pair[0] != pair[1]:
            return ReplayDifference(number + 1, *pair)
    return None

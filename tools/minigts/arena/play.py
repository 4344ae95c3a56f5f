"""A lab's incident as it is played: tools that are called, each noted with its answer, and the answer at the end.

Each call has a turn on the lab's clock, so between two calls no time of the lab passes, however long somebody thinks,
and the same calls get the same answers. Commands run in this process, which takes milliseconds; a verb of its own takes
half a second.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

import minigts
from minigts import paths
from minigts.agents.desk import Desk, answer_text
from minigts.agents.roles import TOOLS as OF_ROLES
from minigts.arena import boards, scores, stage
from minigts.arena.cluster_kinds import OBJECTS
from minigts.arena.kinds import BY_NAME
from minigts.arena.scores import ArenaAnswer
from minigts.arena.transcript import (
    MOST_CALLS,
    Argument,
    PlayedCall,
    PlayedEnd,
    PlayedTicket,
    Transcript,
    line_of,
    parse_line,
)
from minigts.errors import CommandFailed, CommandTimeout, InputError, MinigtsError
from minigts.foreign import Foreign
from minigts.lab import Lab, provisioning
from minigts.language.fields import unknown
from minigts.lessons import breaks
from minigts.lessons.breaks import INCIDENT
from minigts.machine import locks

_OF_THIS_MACHINE = ("status", "explain", "logs", "events")
"""Tools that tell what minigts keeps of the lab beside its hosts, such as this machine's time of day."""
TOOLS = tuple(name for role in ("read", "repair") for name in OF_ROLES[role] if name not in _OF_THIS_MACHINE)
"""The tools that an incident has: those of the role `repair` that ask the hosts."""
MOST_CALLS_BYTES = 64 << 20


@dataclass(frozen=True)
class _HostDesk(Desk):
    """A desk whose commands run on hosts from this process."""

    on: Lab | None = None

    def _executed(self, host: str, argv: Sequence[str], seconds: float, stdin: bytes | None) -> str:
        assert self.on is not None
        words = provisioning.environment_command(self.on, host, argv)
        try:
            ended = self.on.provider.run(host, words, timeout_s=seconds, check=False, stdin=stdin or b"")
        except CommandTimeout as error:
            return answer_text(error.out, error.err + f"ended after {seconds:g} s\n", error.code)
        except CommandFailed as error:  # its output was too long
            return answer_text(error.out, Foreign(str(error)), error.code)
        return answer_text(ended.stdout, ended.stderr, ended.code)


class Play:
    """The incident of a lab, which waits for its answer. Raises InputError where the lab has none."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self.record = lab, stage.require(lab)
        self._desk = _HostDesk(lab.name, on=lab)

    @property
    def lab_name(self) -> str:
        return self._lab.name

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self._lab.plan.hosts)

    @property
    def objects(self) -> tuple[str, ...]:
        """The objects of a cluster that a fault may be at."""
        return OBJECTS if boards.BOARDS[self.record.incident.board].manifest else ()

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of faults that there are, each with a sentence."""
        return {name: kind.says for name, kind in BY_NAME.items() if kind.unplugs is None}

    @property
    def calls(self) -> tuple[PlayedCall, ...]:
        """The calls so far."""
        path = self._lab.rundir / stage.CALLS
        try:
            lines = paths.read_whole(path, MOST_CALLS_BYTES).decode().splitlines()
        except FileNotFoundError:
            return ()
        found = (parse_line(line, str(path), number) for number, line in enumerate(lines, 1))
        return tuple(each for each in found if isinstance(each, PlayedCall))

    @property
    def lab_s(self) -> float:
        """The lab's time since the ticket, in seconds."""
        return round(self._lab.provider.now_s() - self.record.began_s, 6)

    def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """Call a tool by its name; its answer, which begins with `refused: ` where the tool refuses. Raises InputError
        for a tool or an argument that there is not, and after MOST_CALLS calls."""
        given = check_arguments(tool, arguments)
        with locks.hold_lock(self._lab.rundir / stage.LOCK, lambda: None):
            number = len(self.calls) + 1
            if number > MOST_CALLS:
                raise InputError(f"an incident takes {MOST_CALLS} calls, and this one has had them: answer it")
            with self._lab.provider.together():
                at_s = self._lab.provider.now_s()
                try:
                    said: str = getattr(self._desk, tool)(**given)
                except MinigtsError as error:
                    said = f"refused: {error}"
                took_s = self._lab.provider.now_s() - at_s
            called = PlayedCall(
                number=number,
                tool=tool,
                arguments=given,
                answer=said,
                at_s=round(at_s - self.record.began_s, 6),
                took_s=round(took_s, 6),
            )
            self._append(line_of(called))
        return said

    def answer(self, answer: ArenaAnswer) -> Transcript:
        """Judge an answer by the lab as it is now, and close the incident; the whole transcript, which the lab keeps,
        too. Raises InputError for a kind or a host that there is not."""
        whole = self.judge(answer)
        self.close(whole)
        return whole

    def close(self, whole: Transcript) -> None:
        """Close the incident, and keep its transcript."""
        self._lab.put(stage.TRANSCRIPT, whole.text)
        (self._lab.rundir / INCIDENT).replace(self._lab.rundir / stage.ANSWERED)

    def judge(self, answer: ArenaAnswer) -> Transcript:
        """The transcript as it would be with this answer, by the lab as it is now. Raises InputError."""
        for each in answer.faults:
            if each.what not in self.kinds:
                raise InputError(unknown("kind of fault", "kinds", each.what, list(self.kinds)))
            if each.where not in self.hosts and each.where not in self.objects:
                raise InputError(unknown("host", "hosts", each.where, (*self.hosts, *self.objects)))
        incident, calls, lab_s = self.record.incident, self.calls, self.lab_s
        with self._lab.provider.together():
            stage.settle(self._lab, incident, mended=True)
            lasting = [each for each in incident.faults if breaks.shows(self._lab, each)]
            now = stage.complaints(self._lab, incident)
        found = scores.score(
            incident.faults,
            answer,
            lasting=lasting,
            before=self.record.complaints,
            now=now,
            calls=len(calls),
            lab_s=lab_s,
        )
        ticket = PlayedTicket(
            incident=incident.name, agent=self.record.agent, ticket=self.record.ticket, minigts=minigts.__version__
        )
        return Transcript(ticket, calls, PlayedEnd(answer=answer, score=found))

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(self._lab.rundir / stage.CALLS, flags, 0o600), "ab") as file:
            file.write(line.encode())


def check_arguments(tool: str, arguments: Mapping[str, object]) -> dict[str, Argument]:
    """The arguments of a tool as it takes them: `3` for a number may be text. Raises InputError."""
    if tool not in TOOLS:
        raise InputError(unknown("tool", "tools", tool, TOOLS))
    method = getattr(Desk, tool)
    kinds = get_type_hints(method)
    known = [name for name in inspect.signature(method).parameters if name != "self"]
    found: dict[str, Argument] = {}
    for name, value in arguments.items():
        if name not in known:
            raise InputError(f"{tool}: {unknown('argument', 'arguments', name, known)}")
        try:
            found[name] = TypeAdapter(kinds[name]).validate_python(value)
        except ValidationError as error:
            raise InputError(f"{tool}: {name}: {str(value)[:60]!r}: {error.errors()[0]['msg']}") from None
    try:
        inspect.signature(method).bind(None, **found)
    except TypeError as error:
        raise InputError(f"{tool}: {error}; its arguments are {', '.join(known)}") from None
    return found


class PlayedDesk(Desk):
    """A desk for `agents.server`, each call of which is one of the incident."""

    def __init__(self, lab: str, play: Play) -> None:
        super().__init__(lab)
        vars(self)["play_of"] = play


def _noted(tool: str) -> Callable[..., str]:
    def ask(self: PlayedDesk, *words: Any, **named: Any) -> str:
        bound = inspect.signature(getattr(Desk, tool)).bind(self, *words, **named)
        play: Play = vars(self)["play_of"]
        return play.call(tool, {name: value for name, value in bound.arguments.items() if name != "self"})

    return ask


for _each in TOOLS:
    setattr(PlayedDesk, _each, _noted(_each))

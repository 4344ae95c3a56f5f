"""Clients of a lab's clock, which ask for the time, the state of the wires, and turns."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from minigts.errors import HostFailed
from minigts.language import documents
from minigts.machine.parallel import breakable
from minigts.providers.agent import halting, sockets
from minigts.providers.agent.patience import CLOCK_S, LabTime
from minigts.providers.course import RecordedCourse
from minigts.providers.uml.clock.process import SOCKET

ANSWER_S = CLOCK_S
NS_PER_S = 1e9
_OF_AN_ANSWER = documents.Bounds(elements=1_000_000, bytes=64 << 20)


class Refused(HostFailed):
    """The clock cannot do what it was asked."""


class ClockClient:
    """A connection to a lab's clock. Raises HostFailed when there is none, or it does not answer."""

    def __init__(self, rundir: Path, answer_s: float | None = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._socket = _connected(rundir, answer_s)
        self._answers = self._socket.makefile("rb")
        self._sleeps: dict[str, Any] | None = None
        """The request for whose answer the lab's time has to pass."""
        halting.enter(self)

    def settle(self) -> bool:
        return self._sleeps is None or not sockets.is_readable(self._socket)

    def move(self, rundir: Path) -> None:
        halting.exchange(self._socket, _connected(rundir, self._answer_s))
        if self._sleeps is not None:
            self._send({**self._sleeps, "turn": halting.turn_number(self._sleeps["turn"])})

    def sleep(self, until_ns: int, turn: int) -> None:
        """Let the lab's time pass; this process may be halted meanwhile."""
        self._sleeps = {"op": "sleep", "until_ns": until_ns, "turn": turn}
        self.ask(**self._sleeps)
        self._sleeps = None

    def _send(self, request: Mapping[str, object]) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def ask(self, op: str, **what: object) -> dict[str, Any]:
        """Send a request and return its answer; provision/clock/src/orders.rs defines both."""
        try:
            with breakable(partial(self._socket.shutdown, socket.SHUT_RDWR)):
                self._send({"op": op, **what})
                if self._sleeps is not None:
                    halting.wait_for(self._socket)
                line = self._answers.readline(_OF_AN_ANSWER.bytes)
        except OSError as error:
            raise HostFailed(f"the lab's clock does not answer ({error.strerror or error})") from error
        if not line:
            raise HostFailed("the lab's clock has ended")
        try:
            answer: dict[str, Any] = documents.document(line, _OF_AN_ANSWER)
        except documents.Unreadable as error:
            raise HostFailed(f"the lab's clock sent an answer that {error}") from error
        if "error" in answer:
            if "unknown variant" in answer["error"]:  # the program has been upgraded since the lab was brought up
                raise HostFailed(f"the lab's clock is another version's, without {op}: end the lab by `minigts down`")
            raise Refused(f"the lab's clock refuses: {answer['error']}")
        return answer

    def now_s(self) -> float:
        """The lab's time, in seconds since its clock began."""
        return self.now_ns() / NS_PER_S

    def now_ns(self) -> int:
        """The lab's time, in nanoseconds since its clock began."""
        return int(self.ask("now")["now_ns"])

    def close(self) -> None:
        halting.leave(self)
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> ClockClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connected(rundir: Path, answer_s: float | None) -> socket.socket:
    try:
        return sockets.open_connection(rundir, SOCKET, answer_s)
    except OSError as error:
        raise HostFailed("the lab's clock does not run") from error


class ClockWatch:
    """See `agent.patience.Clock`. It asks for the time again and again, without waiting for the answer."""

    def __init__(self, rundir: Path) -> None:
        try:
            self._socket = sockets.open_connection(rundir, SOCKET, 0)
        except OSError as error:
            raise HostFailed("the lab's clock does not run") from error
        self._asked_s: float | None = None
        self._said = b""
        self._time: LabTime | None = None

    @property
    def unanswered_s(self) -> float:
        return 0.0 if self._asked_s is None else time.monotonic() - self._asked_s

    def look(self) -> LabTime | None:
        try:
            self._take()
            if self._asked_s is None:
                self._socket.sendall(b'{"op": "now"}\n')
                self._asked_s = time.monotonic()
        except OSError as error:
            raise HostFailed("the lab's clock has ended") from error
        return self._time

    def _take(self) -> None:
        with suppress(BlockingIOError):
            while piece := self._socket.recv(1 << 12):
                self._said += piece
            raise ConnectionResetError
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            told = documents.document(line, _OF_AN_ANSWER)
            self._time, self._asked_s = LabTime(told["now_ns"] / NS_PER_S, told["passes"]), None


class ClockTurn:
    """See `machine.parallel.Turn`. The turn ends with its connection, also after a crash."""

    def __init__(self, rundir: Path) -> None:
        self._client = ClockClient(rundir)
        halting.leave(self._client)  # it moves with this
        self.number: int = self._client.ask("turn")["turn"]
        self._rests = False
        halting.enter_turn(self)

    def settle(self) -> bool:
        return True

    def move(self, rundir: Path) -> None:
        self._client.move(rundir)
        before, self.number = self.number, int(self._client.ask("turn")["turn"])
        halting.renumber(before, self.number)

    def rest_again(self) -> None:
        if self._rests:
            self.rest()

    def rest(self) -> None:
        self._client.ask("rest")
        self._rests = True

    def resume(self) -> None:
        self._rests = False
        self._client.ask("resume")

    def end(self) -> None:
        halting.leave(self)
        self._client.close()


def now_s(rundir: Path) -> float:
    """The lab's time, in seconds since its clock began."""
    with ClockClient(rundir) as client:
        return client.now_s()


def sleep_until(rundir: Path, moment_s: float, turn: int) -> None:
    """Let the lab's time pass until `moment_s`, at which the clock stands still for the thread with that turn."""
    with ClockClient(rundir, None) as client:  # without a limit: an hour of the lab's time may take any time
        client.sleep(round(moment_s * NS_PER_S), turn)


def pause(rundir: Path, host: int, *, pauses: bool) -> None:
    """Pause the host of that number, or resume it."""
    with ClockClient(rundir) as client:
        client.ask("pause_host" if pauses else "resume_host", host=host)


def has_come_up(rundir: Path, host: int) -> bool:
    """Whether the agent of the host of that number has greeted. Only such a host can be paused; one that can goes on at
    once. The caller's turn stops the lab's time."""
    with ClockClient(rundir) as client:
        try:
            client.ask("pause_host", host=host)
        except Refused:
            return False
        client.ask("resume_host", host=host)
        return True


def set_topology(rundir: Path, layout: Mapping[str, Any]) -> None:
    """Replace the clock's hosts and links."""
    with ClockClient(rundir) as client:
        client.ask("set_topology", **layout)


def wires(rundir: Path) -> Sequence[Mapping[str, Any]]:
    """The wire at each port: host, port, settings, and counters of what it has carried."""
    with ClockClient(rundir) as client:
        answer: list[Mapping[str, Any]] = client.ask("wires")["wires"]
    return answer


def storms(rundir: Path) -> Sequence[Mapping[str, Any]]:
    """The ports at which frames go round: host, port, since when, and how many were dropped."""
    with ClockClient(rundir) as client:
        answer: list[Mapping[str, Any]] = client.ask("storms")["storms"]
    return answer


def course(rundir: Path) -> RecordedCourse:
    """The lab's course so far."""
    with ClockClient(rundir) as client:
        told = client.ask("course")["course"]
    try:
        return RecordedCourse.model_validate(told)
    except ValidationError as error:
        raise HostFailed(f"the lab's clock tells of a course that cannot be: {error.errors()[0]['msg']}") from error


def set_wires(rundir: Path, settings: Sequence[Mapping[str, Any]]) -> None:
    with ClockClient(rundir) as client:
        client.ask("set", wires=list(settings))

"""Halts this process while it waits for its lab, and has it become two: the other one goes on with a fork of the lab.

Whoever runs a test can have it halted so (explore/tails.py): a socket takes the requests, which are lines of JSON, and
is looked at wherever this process waits for a host or for a moment of the lab. What it has open to the lab is entered
here. In the other process each of these leads to the fork, at which the same is waited for; the code that waits does
not notice.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from minigts.language import documents
from minigts.machine import shell
from minigts.providers.agent import sockets

VARIABLE = "MINIGTS_HALT"
"""The environment variable with the path of the socket."""
HALT, FORK, GO = "halt", "fork", "go"
"""The requests. HALT is answered once all is heard that hosts have said; FORK, in a process that is halted, by the id
of the other one, and by its exit code once it has ended; GO lets it go on."""
THREADS = {"error": "it has threads at that moment"}
FAILED = 70
"""The exit code of a process that could not go on with the fork (sysexits.h, EX_SOFTWARE)."""


class Opened(Protocol):
    """What this process has open to its lab."""

    def settle(self) -> bool:
        """Hear all that has come up to now; False if that ends a wait."""
        ...

    def move(self, rundir: Path) -> None:
        """Lead to the lab in that run directory, which was this one until now. Raises HostFailed, OSError."""
        ...


class OpenedTurn(Opened, Protocol):
    """A turn on the lab's clock, which is busy when it has moved."""

    def rest_again(self) -> None:
        """Let it rest if it did so before it moved."""
        ...


@dataclass
class _Halts:
    """How this process can be halted."""

    requests: socket.socket
    lines: Any
    process: int
    turns: dict[int, OpenedTurn] = field(default_factory=dict)
    """Those that have a turn, by their ids; they move first."""
    others: dict[int, Opened] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    """The new number of each turn that has moved."""
    moved: list[Callable[[Path], None]] = field(default_factory=list)
    asked: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by the thread that takes the first request."""


_halts: _Halts | None = None


def begin() -> None:
    """Let this process be halted, if VARIABLE says by whom. Its children are not."""
    global _halts  # noqa: PLW0603 - one process is halted as a whole
    address = os.environ.pop(VARIABLE, None)
    if address is not None:
        with suppress(OSError):
            requests = sockets.open_connection(Path(address).parent, Path(address).name, None)
            _halts = _Halts(requests, requests.makefile("rb"), os.getpid())


def enter(what: Opened) -> None:
    """Enter what is open to the lab from now on."""
    if _halts is not None:
        _halts.others[id(what)] = what


def enter_turn(turn: OpenedTurn) -> None:
    if _halts is not None:
        _halts.turns[id(turn)] = turn


def leave(what: Opened) -> None:
    if _halts is not None:
        _halts.turns.pop(id(what), None)
        _halts.others.pop(id(what), None)


def add_move(act: Callable[[Path], None]) -> None:
    """Call `act` with the run directory of the fork in a process that goes on with one."""
    if _halts is not None:
        _halts.moved.append(act)


def renumber(before: int, now: int) -> None:
    """A turn has moved, and has another number on the fork's clock."""
    if _halts is not None:
        _halts.numbers[before] = now


def turn_number(number: int) -> int:
    """The number on this lab's clock of a turn that had `number` when it began."""
    return number if _halts is None else _halts.numbers.get(number, number)


def descriptor() -> int | None:
    """What a wait looks at beside its own: something to read there means that this process is to be halted."""
    if _halts is None or threading.current_thread() is not threading.main_thread() or os.getpid() != _halts.process:
        return None
    return _halts.requests.fileno()


def wait_for(connection: socket.socket) -> None:
    """Return once there is something to read. Meanwhile this process may be halted."""
    if is_asked():
        halt()
    while (own := descriptor()) is not None:
        watched = select.poll()
        watched.register(connection, select.POLLIN)
        watched.register(own, select.POLLIN)
        ready = dict(watched.poll())
        if own in ready:
            halt()
        if connection.fileno() in ready:
            return


def halt() -> None:
    """Do what is asked of this process where it waits; return where it goes on waiting, in each of the processes that
    it has become. What has come in between ends its wait, and it is halted where it waits next."""
    halts = _halts
    assert halts is not None
    if not halts.asked:
        with halts.lock:
            if not sockets.is_readable(halts.requests) or _request(halts) is None:
                return
        halts.asked = True
    if not all(each.settle() for each in [*halts.turns.values(), *halts.others.values()]):
        return
    halts.asked = False
    if threading.active_count() > 1:
        _answer(halts, THREADS)
        return
    _answer(halts, {})
    while (request := _request(halts)) is not None and request["op"] == FORK:
        child = shell.fork()
        if not child:
            _become(halts, request)
            return
        _answer(halts, {"process": child})
        _, status = os.waitpid(child, 0)
        _answer(halts, {"code": os.waitstatus_to_exitcode(status)})


def refuse_in_thread() -> None:
    """In a thread beside the first one, which may wait for it: say that this process cannot be halted."""
    if _halts is not None and threading.current_thread() is not threading.main_thread():
        with _halts.lock:
            if not _halts.asked and sockets.is_readable(_halts.requests) and _request(_halts) is not None:
                _answer(_halts, THREADS)


def is_asked() -> bool:
    """Whether this process is to be halted at its next wait."""
    return _halts is not None and _halts.asked and descriptor() is not None


def _request(halts: _Halts) -> Mapping[str, Any] | None:
    """The next request; None once nobody asks any more."""
    global _halts  # noqa: PLW0603
    line = halts.lines.readline()
    if not line:
        _halts = None
        return None
    found: Mapping[str, Any] = documents.document(line)
    return found


def _answer(halts: _Halts, what: Mapping[str, object]) -> None:
    with suppress(OSError):
        halts.requests.sendall(json.dumps(what).encode() + b"\n")


def _become(halts: _Halts, request: Mapping[str, Any]) -> None:
    """Go on with the fork, in a process group of its own; never return where that fails."""
    global _halts  # noqa: PLW0603
    try:
        output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        rundir = Path(request["rundir"])
        for act in halts.moved:
            act(rundir)
        for each in [*halts.turns.values(), *halts.others.values()]:
            each.move(rundir)
        for turn in halts.turns.values():
            turn.rest_again()  # last, since no time may pass until all have moved
        halts.lines.close()
        halts.requests.close()
        _halts = None
    except BaseException as error:
        os.write(2, f"the test could not go on with the fork of its lab: {error!r}\n".encode())
        os._exit(FAILED)


def exchange(old: socket.socket, new: socket.socket) -> None:
    """Have the socket `old` be what `new` is, which is closed."""
    os.dup2(new.fileno(), old.fileno(), inheritable=False)
    new.close()

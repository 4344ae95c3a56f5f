"""A turn on a lab's clock that another program lends to this one (docs/decisions/many-seeds.md).

A program such as a test has no turn of its own, so beside others who wait the lab's time would pass while it thinks.
Whoever starts it can hold a turn for it: VARIABLE names a socket by which this process and its children say when they
wait for a host. Meanwhile time passes; else it stands still. A command's wait on the clock names the lent turn, so its
end makes the turn busy again at that moment, before this process has heard of it.

A request is one of the words below on a line, and its answer a whole number on a line.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from minigts.errors import HostFailed
from minigts.machine.parallel import current_turn
from minigts.providers.agent import halting, sockets

VARIABLE = "MINIGTS_TURN"
"""The environment variable with the path of the socket."""
NUMBER, BEGINS, ENDS, REST, RESUME, WAITS = "number", "begins", "ends", "rest", "resume", "waits"
"""The requests. BEGINS is answered by how many microseconds late the program should act, NUMBER by the turn's number,
the others by 0. WAITS is of one who waits since before it could say so."""
LONGEST_LINE = 64
US_PER_S = 1e6


class LentTurn:
    """See `machine.parallel.Turn`. Threads of this process share one connection."""

    def __init__(self, address: Path) -> None:
        self._socket = _connected(address)
        self._answers = self._socket.makefile("rb")
        self._asking = Lock()
        self._waiting = 0
        self._rests = False
        self.number = self._ask(NUMBER)
        halting.enter_turn(self)

    def settle(self) -> bool:
        return True

    def move(self, rundir: Path) -> None:
        """Borrow the turn of whoever lends one to this process now."""
        halting.exchange(self._socket, _connected(Path(os.environ[VARIABLE])))
        before, self.number = self.number, self._ask(NUMBER)
        halting.renumber(before, self.number)
        for _ in range(self._waiting):
            self._ask(WAITS)

    def rest_again(self) -> None:
        if self._rests:
            self._ask(REST)

    def begins(self) -> float:
        """Say that this thread waits for a host from now on; return how many seconds late it is to act."""
        late_us = self._ask(BEGINS)
        self._waiting += 1
        return late_us / US_PER_S

    def ends(self) -> None:
        """Say that the wait is over. The turn is busy already."""
        self._waiting -= 1
        self._ask(ENDS)

    def rest(self) -> None:
        self._ask(REST)
        self._rests = True

    def resume(self) -> None:
        self._rests = False
        self._ask(RESUME)

    def end(self) -> None:
        """Nothing: the turn ends when its owner says so."""

    def _ask(self, request: str) -> int:
        with self._asking:
            try:
                self._socket.sendall(request.encode() + b"\n")
                answer = self._answers.readline(LONGEST_LINE)
            except OSError:
                answer = b""
        if not answer.strip().isdigit():
            raise HostFailed("the program that lends this one its turn on the lab's clock has ended")
        return int(answer)


def _connected(address: Path) -> socket.socket:
    try:
        return sockets.open_connection(address.parent, address.name, None)
    except OSError as error:
        why = error.strerror or error
        raise HostFailed(f"{VARIABLE}={address}: nobody lends a turn there any more ({why})") from error


def borrow() -> LentTurn | None:
    """The turn that is lent to this process; None if there is none. Raises HostFailed."""
    address = os.environ.get(VARIABLE)
    return _of_process(os.getpid(), Path(address)) if address else None


@cache
def _of_process(_process: int, address: Path) -> LentTurn:
    return LentTurn(address)


def number() -> int:
    """The number of this thread's turn, its own or the lent one; 0 if it has none."""
    return current_turn() or (0 if (lent := borrow()) is None else lent.number)


@contextmanager
def waiting() -> Iterator[tuple[int, float]]:
    """A context in which this thread waits for the lab; the number of its turn, and how many seconds late it is to act.
    Only a thread with a lent turn is late."""
    own = current_turn()
    lent = None if own else borrow()
    if lent is None:
        yield own, 0.0
        return
    late_s = lent.begins()
    try:
        yield lent.number, late_s
    finally:
        lent.ends()

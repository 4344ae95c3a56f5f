"""Lends this thread's turn on a lab's clock to the programs that it starts; see lent_turn."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

from minigts.errors import HostFailed
from minigts.machine.parallel import Turn
from minigts.providers.agent import lent_turn, sockets

NAME = "turn.sock"
LONGEST_WAIT_S = 60.0
"""How long to wait for the lending thread to end; it never waits for anything but the clock's answer."""


@contextmanager
def lend(turn: Turn, directory: Path, late_us: Callable[[int], int]) -> Iterator[Mapping[str, str]]:
    """Lend the turn by a socket in `directory` as long as the context lasts; its value is the environment of those who
    borrow it. `late_us` gives by how many microseconds late they do their n-th act, from 0."""
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    with ExitStack() as stack:
        stack.callback(os.close, opened)
        # Through the open directory, since a socket's path may have at most 107 bytes (unix(7)).
        listener = stack.enter_context(sockets.listening(f"/proc/self/fd/{opened}/{NAME}"))
        stack.callback((directory / NAME).unlink, missing_ok=True)
        stop, stopped = socket.socketpair()
        stack.enter_context(stop)
        stack.enter_context(stopped)
        thread = Thread(target=_Lender(turn, late_us).serve, args=(listener, stopped), daemon=True)
        thread.start()
        try:
            yield {lent_turn.VARIABLE: str(directory / NAME)}
        finally:
            stop.send(b"\n")
            thread.join(LONGEST_WAIT_S)


class _Lender:
    """Answers those who borrow a turn. It is one thread, so all they say has one order."""

    def __init__(self, turn: Turn, late_us: Callable[[int], int]) -> None:
        self._turn, self._late_us = turn, late_us
        self._acts = 0
        """How many acts the borrowers have begun."""
        self._waiting = 0
        """How many of them wait now."""

    def serve(self, listener: socket.socket, stopped: socket.socket) -> None:
        with selectors.DefaultSelector() as sources, ExitStack() as stack:
            sources.register(stopped, selectors.EVENT_READ)
            sources.register(listener, selectors.EVENT_READ)
            while True:
                for key, _ in sources.select():
                    if key.fileobj is stopped:
                        return
                    if key.fileobj is listener:
                        connection = stack.enter_context(listener.accept()[0])
                        sources.register(connection, selectors.EVENT_READ, _Borrower())
                    elif not self._hear(key.fileobj, key.data):  # type: ignore[arg-type]  # all others are sockets
                        sources.unregister(key.fileobj)

    def _hear(self, connection: socket.socket, borrower: _Borrower) -> bool:
        """Answer what a borrower asks; False when it has gone, or the clock has."""
        try:
            said = connection.recv(1 << 12)
            for request in borrower.feed(said):
                connection.sendall(b"%d\n" % self._answer(request, borrower))
        except (OSError, HostFailed):
            said = b""
        if not said:
            self._forget(borrower)
            connection.close()
        return bool(said)

    def _answer(self, request: str, borrower: _Borrower) -> int:
        match request:
            case lent_turn.NUMBER:
                return self._turn.number
            case lent_turn.BEGINS:
                self._acts += 1
                self._waiting += 1
                borrower.waiting += 1
                return self._late_us(self._acts - 1)
            case lent_turn.WAITS:
                self._waiting += 1
                borrower.waiting += 1
            case lent_turn.ENDS:
                borrower.waiting -= 1
                self._ended()
            case lent_turn.REST:
                self._turn.rest()
            case lent_turn.RESUME:
                self._turn.resume()
        return 0

    def _ended(self) -> None:
        """One borrower less waits. Its answer made the turn busy; while others wait, as those that a shell has started
        side by side, time has to pass for them."""
        self._waiting -= 1
        if self._waiting > 0:
            self._turn.rest()

    def _forget(self, borrower: _Borrower) -> None:
        """Forget a borrower that was ended while it waited. Time stands still until another one waits."""
        with suppress(HostFailed):
            if borrower.waiting:
                self._turn.resume()
        while borrower.waiting > 0:
            borrower.waiting -= 1
            with suppress(HostFailed):
                self._ended()


class _Borrower:
    """What a connection has sent so far of a line, and for how many answers its process waits."""

    def __init__(self) -> None:
        self._begun = b""
        self.waiting = 0

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._begun = (self._begun + piece).split(b"\n")
        self._begun = self._begun[: lent_turn.LONGEST_LINE]
        return [line.decode(errors="replace") for line in lines]

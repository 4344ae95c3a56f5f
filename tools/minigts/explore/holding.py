"""Holds the test of a seed where it waits, and has it become two; see `agent.halting`, which is the test's side."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from minigts.errors import MinigtsError
from minigts.explore import program
from minigts.language import documents
from minigts.providers.agent import halting, sockets

NAME = "halt.sock"
LOOK_S = 0.05
HALTS_IN_S = 120.0
"""How long a test may take to wait for its lab, by this machine's clock; it may think, such as judge a history."""


class Holder:
    """The line to a test that can be held. `is_over` says that nothing is to be waited for any more."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._opened = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, self._opened)
        # Through the open directory, since a socket's path may have at most 107 bytes (unix(7)).
        self._listener = stack.enter_context(sockets.listening(f"/proc/self/fd/{self._opened}/{NAME}"))
        stack.callback((place / NAME).unlink, missing_ok=True)
        self._stack = stack
        self._line: socket.socket | None = None
        self._said = b""
        self.held_s = 0.0
        """How long the test has been held so far, by this machine's clock."""
        self.variables = {halting.VARIABLE: str(place / NAME)}
        """What the test needs in its environment."""

    @contextmanager
    def hold(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Hold the test where it waits for its lab. Raises MinigtsError when it does not, or has ended."""
        begun = time.monotonic()
        try:
            self._halt(lambda: self._require(begun, is_over))
        except MinigtsError:
            if self._line is not None:
                self._line.close()  # else it would wait there for a request
            raise
        try:
            yield
        finally:
            with suppress(MinigtsError):
                self._send({"op": halting.GO})
            self.held_s += time.monotonic() - begun

    def _halt(self, look: Callable[[], object]) -> None:
        self._listener.settimeout(LOOK_S)
        while self._line is None:
            with suppress(TimeoutError):
                self._line = self._stack.enter_context(self._listener.accept()[0])
            look()
        self._line.settimeout(LOOK_S)
        self._send({"op": halting.HALT})
        if "error" in (answer := self._answer(look)):
            raise MinigtsError(f"the test cannot become two: {answer['error']}")

    def _require(self, begun: float, is_over: Callable[[], bool]) -> None:
        if is_over():
            raise MinigtsError("the test has ended")
        if time.monotonic() - begun > HALTS_IN_S:
            raise MinigtsError(
                f"the test has not waited for its lab by itself for {HALTS_IN_S:g} s: it cannot become two"
            )

    def run(self, rundir: Path, place: Path, variables: Mapping[str, str], is_over: Callable[[], bool]) -> int | None:
        """Have the test become two while it is held, the other one for the lab in that run directory and with its files
        below `place`; return that one's exit code, or None if it was ended."""
        output, cwd = place / program.OUTPUT, place / program.WORK
        where = {"rundir": str(rundir), "output": str(output), "cwd": str(cwd), "env": dict(variables)}
        self._send({"op": halting.FORK, **where})
        process = int(self._answer(lambda: None)["process"])
        if process <= 1:  # a group of that number is this program's own, or everybody's
            raise MinigtsError(f"the test says that it has become process {process}")
        deadline, killed = time.monotonic() + program.GIVEN_UP_S, False

        def look() -> None:
            nonlocal killed
            if not killed and (is_over() or time.monotonic() > deadline):
                killed = True
                _end_group(process)

        try:
            code = int(self._answer(look)["code"])
        finally:
            _end_group(process)
        return None if killed else code

    def _send(self, request: Mapping[str, object]) -> None:
        assert self._line is not None
        try:
            self._line.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise MinigtsError("the test has ended") from error

    def _answer(self, look: Callable[[], object]) -> Mapping[str, Any]:
        """The next answer; `look` is called meanwhile. Raises MinigtsError."""
        assert self._line is not None
        while b"\n" not in self._said:
            try:
                piece = self._line.recv(1 << 12)
            except TimeoutError:
                look()
                continue
            except OSError:
                piece = b""
            if not piece:
                raise MinigtsError("the test has ended")
            self._said += piece
        line, _, self._said = self._said.partition(b"\n")
        answer: Mapping[str, Any] = documents.document(line)
        return answer


def _end_group(process: int) -> None:
    """Kill what is left of the process group that a process of the test's leads."""
    with suppress(OSError):
        os.killpg(process, signal.SIGKILL)

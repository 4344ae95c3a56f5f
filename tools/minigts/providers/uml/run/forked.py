"""The clock and the kernels of a fork: a lab whose kernels another lab's, its origin's, have become while they waited.

The supervisor of the fork has its own socket for the clock's clients, and a line, a console and a disk for each host.
It sends them to the origin's clock, which has each kernel become two at one moment, and then becomes two itself. The
processes are the origin's children, so they end with it at the latest, and they are held as the origin's are. A host
that is started again is a new kernel, as in any lab. Standard library only, like the supervisor.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from minigts import paths
from minigts.errors import MinigtsError
from minigts.language import documents
from minigts.machine import affinity
from minigts.providers.agent import sockets
from minigts.providers.uml.clock.process import SOCKET, ClockOrder, ClockProcess
from minigts.providers.uml.run import command_line
from minigts.providers.uml.run.command_line import LENT_MODULES, RETURNED, GuestKernel
from minigts.providers.uml.run.console import Console

FORK_S = 100.0
"""How long the origin's clock may take to answer: all kernels copy their memory meanwhile."""


SHARED = "fork."
"""How the names begin of directories that forks' guests may mount."""


class Adopted:
    """A process that is not this one's child, with the methods of `SupervisedProcess`. Raises OSError if it is not
    there."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._held = os.pidfd_open(pid)
        self._ready = select.poll()
        self._ready.register(self._held, select.POLLIN)
        self._has_ended = False

    def poll(self) -> int | None:
        """As for a process that was killed, once it has ended: nobody here is told more."""
        self._has_ended = self._has_ended or bool(self._ready.poll(0))
        return -signal.SIGKILL if self._has_ended else None

    def wait(self) -> int:
        while self.poll() is None:
            self._ready.poll()
        return -signal.SIGKILL

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int, /) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._held, number)


@dataclass(frozen=True)
class ForkedKernel:
    """A kernel of the fork: its process, our end of its line, and its console."""

    process: Adopted
    line: socket.socket
    console: Console
    last_channel: int


class ForkedClock(ClockProcess):
    """As `ClockProcess`. The fork happens when this is made; `kernels` are those that the origin has. Raises
    MinigtsError."""

    def __init__(
        self, order: ClockOrder, machines: Sequence[GuestKernel], rundir: Path, origin: Path, seed: int
    ) -> None:
        self._order = order
        running = command_line.running(origin)
        here = [machine for machine in machines if machine.name in running]
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lines: dict[int, socket.socket] = {}
        consoles: dict[int, Console] = {}
        with ExitStack() as stack, (rundir / "clock.log").open("ab") as log:
            stack.callback(theirs.close)
            listener = stack.enter_context(sockets.listening(SOCKET))
            self._send({"hosts": len(here)}, [listener.fileno(), log.fileno()])
            for machine in here:
                lines[machine.number], line = socket.socketpair()
                stack.callback(line.close)
                consoles[machine.number] = console = _console(rundir / machine.console)
                disk = stack.enter_context(_empty_file(rundir / machine.disk))
                shared = _share(origin / machine.shared, rundir / machine.shared)
                folders = [_opened(each, stack) for each in (origin / machine.shared, shared)]
                self._send({"host": machine.number}, [line.fileno(), console.descriptor, disk.fileno(), *folders])
            told = _ask(origin, seed, theirs)
        self._starts = {each["host"]: each["start"] for each in told["hosts"]}
        self._numbers = itertools.count(1 + max(self._starts.values(), default=0))
        try:
            self.process = Adopted(told["clock"])
            by_number = {machine.number: machine for machine in here}
            self.kernels = {
                by_number[each["host"]].name: ForkedKernel(
                    Adopted(each["process"]), lines[each["host"]], consoles[each["host"]], each["last_channel"]
                )
                for each in told["hosts"]
            }
        except OSError as error:
            raise MinigtsError(f"the fork has ended at once ({error})") from error
        for number, each in zip(self._starts, self.kernels.values(), strict=True):
            affinity.hold_to_one(each.process.pid, number)

    def _send(self, what: dict[str, int], descriptors: list[int]) -> None:
        socket.send_fds(self._control, [json.dumps(what).encode()], descriptors)


def _ask(origin: Path, seed: int, control: socket.socket) -> dict[str, Any]:
    """Have the origin's clock fork; its answer. Raises MinigtsError."""
    try:
        with sockets.open_connection(origin, SOCKET, FORK_S) as connection, connection.makefile("rb") as answers:
            socket.send_fds(connection, [json.dumps({"op": "fork", "seed": seed}).encode() + b"\n"], [control.fileno()])
            told: dict[str, Any] = documents.document(answers.readline(1 << 20))
    except (OSError, ValueError) as error:
        raise MinigtsError(f"the clock of lab {origin.name} does not answer: {error}") from error
    if "error" in told:
        raise MinigtsError(f"the clock of lab {origin.name} refuses: {told['error']}")
    return told


def _console(file: Path) -> Console:
    file.parent.mkdir(parents=True, exist_ok=True)
    return Console(file)


def _empty_file(file: Path) -> IO[bytes]:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.open("x+b")


def _share(first: Path, link: Path) -> Path:
    """Make a directory that the guest of a forked kernel may mount. It lies where its origin's may write files, since a
    kernel's rules are those of its origin; `link` leads there."""
    for number in itertools.count(1):
        made = first / RETURNED / f"{SHARED}{number}"
        try:
            made.mkdir(mode=0o700)
        except FileExistsError:
            continue
        break
    (made / RETURNED).mkdir()
    if (first / LENT_MODULES).is_dir():
        shutil.copytree(first / LENT_MODULES, made / LENT_MODULES)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(made)
    return made


def forget_shared(rundir: Path) -> None:
    """Remove the directories that a fork's guests could mount, which lie in its origin's run directory."""
    for link in (rundir / "shared").glob("*"):
        if link.is_symlink():
            place = link.readlink()
            if place.parent.name == RETURNED and place.name.startswith(SHARED) and not place.is_symlink():
                paths.remove_tree(place)


def _opened(directory: Path, stack: ExitStack) -> int:
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor

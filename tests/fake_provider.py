"""Provider `fake`: a host is a directory, its commands are processes of this machine. For tests; not registered.

It keeps the whole contract of `providers.base`, so that what stands on providers can be tested in milliseconds and
without kernels. Nothing shuts a command in: it runs as the caller, in the machine's own network. A word of a
command that names a file which was put on the host stands for that file; `HOME` and the working directory are the
host's own.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import termios
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TypeVar

from minigts.dataplane.wire import Wire, WireState
from minigts.errors import CommandFailed, CommandTimeout, HostFailed
from minigts.machine import shell
from minigts.providers import archive, supported
from minigts.providers.agent import lab_processes
from minigts.providers.archive import Copy
from minigts.providers.base import CommandResult, DoctorFinding, Supports
from minigts.providers.real_time import RealTime
from minigts.topology.plan.plan import Plan

T = TypeVar("T")
LAB_MARK = "MINIGTS_FAKE_LAB"
"""In the environment of every process of a lab: its run directory."""
COMMAND_MARK = "MINIGTS_FAKE_COMMAND"
"""In the environment of everything that one command started."""
NOT_FOUND = 127
CHUNK = 1 << 16

_numbers = itertools.count()


class FakeProvider(RealTime):
    """See `providers.base.Provider`. A lab is `hosts/<name>/root` below the run directory, nothing else."""

    name = "fake"
    about = "one directory a host"
    supports = Supports(
        frozenset({"memory of its own"}),
        {name: "its hosts are directories" for name in supported.names() if name != "memory of its own"},
    )
    engine: Literal["docker", "namespace"] = "docker"
    pace_s = 0.004

    def __init__(self, rundir: Path) -> None:
        self.rundir = rundir

    def missing(self) -> list[str]:
        return []

    def findings(self) -> Iterable[DoctorFinding]:
        return ()

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        for count, machine in enumerate(plan.machines, 1):
            (self.rundir / "hosts" / machine.name / "root").mkdir(parents=True, exist_ok=True)
            progress(f"{count} of {len(plan.machines)} hosts answer")

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        begun = time.monotonic()
        root = self._root(host)
        self._log(host, argv)
        mark = f"{os.getpid()}-{next(_numbers)}"
        try:
            started = shell.start(
                _inside(root, argv),
                stdin=subprocess.PIPE,
                output=subprocess.PIPE,
                errors=subprocess.PIPE,
                env=self._environment(root, mark),
                cwd=root,
            )
        except OSError as error:
            code, overdue, said = NOT_FOUND, False, ("", f"{argv[0]}: {error}\n")
        else:
            conversation = _Conversation(started, stdin, on_output)
            overdue = not conversation.lasts_until(begun + timeout_s)
            if overdue:
                _kill_marked(COMMAND_MARK, mark)
            code, said = conversation.end()
        if overdue:
            raise CommandTimeout(host, argv, timeout_s, *said)
        if check and code != 0:
            raise CommandFailed(host, argv, code, *said)
        return CommandResult(host, tuple(argv), code, *said, time.monotonic() - begun)

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        place = self._root(host) / str(target).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        else:
            place.unlink(missing_ok=True)
            shutil.copy2(source, place)

    def get(self, host: str, source: PurePosixPath, target: Path) -> Copy:
        return self.archive_of(host, source, lambda packed: archive.unpack(host, packed, target))

    def archive_of(self, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], T]) -> T:
        place = self._root(host) / str(source).lstrip("/")
        if not place.exists():
            raise CommandFailed(host, ["get", str(source)], 1, "", f"no file or directory {source}")
        with tempfile.TemporaryFile() as packed:
            subprocess.run(archive.packing(PurePosixPath(place)), stdout=packed, check=True)
            packed.seek(0)
            return read(packed)

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        place = self._root(host) / str(above).lstrip("/")
        with tempfile.TemporaryFile() as packed:
            written = write(packed)
            packed.seek(0)
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["tar", "-x", "--no-same-owner", "-C", str(place)], stdin=packed, check=True)
        return written

    def attach(self, host: str, argv: Sequence[str]) -> int:
        root = self._root(host)
        before = signal.signal(signal.SIGINT, lambda *_: None)  # what is typed is the command's business
        terminal = termios.tcgetattr(0) if os.isatty(0) else None
        try:
            started = shell.start(
                _inside(root, argv),
                stdin=0,
                output=1,
                errors=2,
                env=self._environment(root, "attached"),
                cwd=root,
                new_session=False,
            )
            return _exit_code(started.wait())
        except OSError as error:
            os.write(2, f"{argv[0]}: {error}\n".encode())
            return NOT_FOUND
        finally:
            if terminal is not None:
                termios.tcsetattr(0, termios.TCSADRAIN, terminal)
            signal.signal(signal.SIGINT, before)

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        console = self.rundir / "hosts" / host / "console.log"
        (into / "console.log").write_bytes(console.read_bytes() if console.exists() else b"")

    def processes(self) -> tuple[int, ...]:
        return tuple(each.pid for each in lab_processes.carrying(LAB_MARK, str(self.rundir)))

    def down(self) -> None:
        _kill_marked(LAB_MARK, str(self.rundir))
        shutil.rmtree(self.rundir / "hosts", ignore_errors=True)

    def _root(self, host: str) -> Path:
        roots = {root.parent.name: root for root in self.rundir.glob("hosts/*/root")}
        if host not in roots:
            raise HostFailed(f"there is no host {host} in this lab")
        return roots[host]

    def _environment(self, root: Path, mark: str) -> dict[str, str]:
        return {"HOME": str(root), LAB_MARK: str(self.rundir), COMMAND_MARK: mark}

    def _log(self, host: str, argv: Sequence[str]) -> None:
        with (self.rundir / "hosts" / host / "console.log").open("a") as console:
            console.write(f"{argv!r}\n")


@dataclass
class Wiring:
    """What lies between the hosts of one lab, as a program of its own would hold it."""

    wires: dict[tuple[str, str], Wire] = field(default_factory=dict)
    counts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """By port what differs from nothing: `{"lost": 3}`."""
    set: list[tuple[tuple[str, str], ...]] = field(default_factory=list)
    """The ports of each call that set something, in order."""


WIRINGS: defaultdict[Path, Wiring] = defaultdict(Wiring)
"""By run directory, as that program outlives the object that stands for the provider."""


class CarriedLinks:
    """See `providers.base.CarriesLinks`. What makes a provider of tests one whose links are wires."""

    rundir: Path

    def set_wires(self, wires: Mapping[tuple[str, str], Wire]) -> None:
        WIRINGS[self.rundir].wires.update(wires)
        WIRINGS[self.rundir].set.append(tuple(wires))

    def wires(self) -> Mapping[tuple[str, str], WireState]:
        wiring = WIRINGS[self.rundir]
        nothing = {"frames": 0, "bytes": 0, "dropped": 0, "lost": 0}
        return {port: WireState(wire, **(nothing | wiring.counts.get(port, {}))) for port, wire in wiring.wires.items()}


class WiredFakeProvider(CarriedLinks, FakeProvider):
    """Provider `fake` whose links are wires."""

    def down(self) -> None:
        super().down()
        WIRINGS.pop(self.rundir, None)


class _Conversation:
    """Feeds a process its input and takes what it says, as both become possible."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, on_output: Callable[[bytes], None] | None
    ) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._process, self._input, self._on_output = process, memoryview(stdin), on_output
        self._said = {process.stdout: bytearray(), process.stderr: bytearray()}
        self._selector = selectors.DefaultSelector()
        self._ended = os.pidfd_open(process.pid)
        self._selector.register(self._ended, selectors.EVENT_READ)
        for stream, events in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, events)

    def lasts_until(self, deadline: float) -> bool:
        """Go on until the process has ended; False when `deadline` on the monotonic clock comes first."""
        while (left_s := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                if key.fileobj == self._ended:
                    return True
                self._advance(key.fileobj)  # type: ignore[arg-type]
        return False

    def end(self) -> tuple[int, tuple[str, str]]:
        """Exit code, stdout and stderr, whether or not a daemon still holds the pipes."""
        code = _exit_code(self._process.wait())
        for stream in self._said:
            while stream.fileno() in self._selector.get_map() and self._take(stream):
                pass
        self._selector.close()
        os.close(self._ended)
        assert self._process.stdin is not None
        for stream in (self._process.stdin, *self._said):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        stdout, stderr = (bytes(said).decode(errors="replace") for said in self._said.values())
        return code, (stdout, stderr)

    def _advance(self, stream: IO[bytes]) -> None:
        if stream in self._said:
            self._take(stream)
        else:
            self._feed(stream)

    def _feed(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                self._input = self._input[os.write(stream.fileno(), self._input[:CHUNK]) :]
            except BrokenPipeError:
                self._input = memoryview(b"")
            if not self._input:
                self._selector.unregister(stream)
                stream.close()

    def _take(self, stream: IO[bytes]) -> bool:
        """Whether there was something."""
        try:
            data = os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(stream)
            return False
        self._said[stream].extend(data)
        if self._on_output is not None:
            self._on_output(data)
        return True


def _inside(root: Path, argv: Sequence[str]) -> list[str]:
    def place(word: str) -> str:
        inside = root / word.lstrip("/")
        return str(inside) if word.startswith("/") and len(word) > 1 and inside.exists() else word

    return [place(word) for word in argv]


def _exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


def _kill_marked(variable: str, value: str) -> None:
    """End every process that has this in its environment, until none is left to fork another."""
    while marked := lab_processes.carrying(variable, value):
        for each in marked:
            lab_processes.send_marked(each, signal.SIGKILL, variable, value)
        time.sleep(0.005)

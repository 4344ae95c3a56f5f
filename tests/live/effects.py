"""What each call of a hostile kernel changes on this machine, by descriptors of every kind that a kernel has.

It runs only in namespaces and on a ground of its own (`APART`, `GROUND`): devices, /proc/cpuinfo, cache, state and the
user's files are copies, since some calls change modes and owners as root.

    python -m tests.live.effects root virtual [REGEX]      prints one line of JSON for each call that had an effect
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from minigts import paths
from minigts.providers.agent import ended, lab_processes
from minigts.providers.uml.build import image
from minigts.providers.uml.clock import process as clock_process
from minigts.providers.uml.run import command_line

from . import private_ground
from .hostile_calls import BY_DESCRIPTOR, BY_PATH, CWD, Call
from .machine_state import Change, State, Zone, changes, look, restore, runs
from .other_user import free_id, give, made_for
from .program import Program, kernel
from .traced_kernel import Ended, Traced, kinds, named

USERS, TIMES = ("root", "plain"), ("virtual", "real")
LAB = "pair"
TOPOLOGY = "name: pair\ntime: {time}\npair: {{hosts: [a, b], link: {{rtt: 2ms}}}}\n"
SETTLES_S = 0.3
"""Longer than the supervisor takes between two looks at its kernels."""
REACHES_OTHERS = re.compile("^(write|pwrite|send|splice|vmsplice|shutdown|recvfrom|bind|connect|listen)")
ENOUGH_ENDS = 1
"""By a descriptor on which another process reads, no more messages are tried once so many have ended the host: it must
be started again each time, and what the clock makes of messages is tried by `bench/run lies`."""
WITH_OTHERS = ("the agent's line", "a link", "another socket")
"""Descriptors on which another process reads, besides those of the clock that it inherits."""
ITS_OWN = ("its memory", "its disk")
"""What a kernel ruins for itself: its lab is brought up anew afterwards."""


@dataclass(frozen=True)
class Effect:
    """What a call by a kind of descriptor, or by a path, has changed."""

    call: str
    by: str
    user: str
    time: str
    changed: tuple[str, ...]


@dataclass
class Ground:
    """A lab of a user, whose host `a` is hostile, and all that it might change."""

    program: Program
    place: Path
    user: str
    time: str
    uid: int
    kernel_directory: Path = field(init=False)

    @property
    def rundir(self) -> Path:
        return self.program.rundir(LAB)

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def cache(self) -> Path:
        return Path(self.program.environment["MINIGTS_CACHE"])

    def prepare(self, text: str) -> None:
        """The user's files, of several kinds, and a topology."""
        folder = self.home / "folder"
        folder.mkdir(parents=True)
        (self.home / "file").write_text("the user's own words\n")
        (folder / "kept").write_text("more of them\n")
        os.setxattr(self.home / "file", "user.kept", b"x")
        os.link(self.home / "file", self.home / "linked")
        (self.home / "link").symlink_to("file")
        os.mkfifo(self.home / "pipe")
        give(self.home, self.uid)
        topology = self.place / "pair.yaml"
        topology.write_text(text.format(time=self.time))
        topology.chmod(0o644)

    def up(self) -> None:
        self.program.succeeds("up", str(self.place / "pair.yaml"), "--overlay", "none", "--certify", "quick")
        self.image = self.cache / "images" / image.key() / "root.ext4"
        self.kernel_directory = Path(f"/proc/{self.kernel('a')}/cwd").readlink()

    def again(self) -> None:
        """A lab as new."""
        self.program.run("down", LAB)
        shutil.rmtree(self.rundir, ignore_errors=True)
        self.up()

    def kernel(self, host: str) -> int:
        return kernel(self.program, LAB, host)

    def zones(self) -> list[Zone]:
        hosts, shared = self.rundir / "hosts", self.rundir / "shared"
        return [
            Zone("the user's files", (self.home,), is_deep=True),
            Zone("the image", (self.image,)),
            Zone("the kernel's program", (self.kernel_directory / "linux",)),
            Zone("the kernel's folder", (self.kernel_directory,), is_deep=True),
            Zone("the image's folder", (self.image.parent,), is_deep=True),
            Zone("the clock", tuple(self.cache.glob("clocks/*/clock"))),
            Zone("the cache", (self.cache, *self.cache.iterdir())),
            *(Zone(f"/dev/{each}", (Path("/dev", each),)) for each in ("null", "zero", "random", "urandom", "tty")),
            Zone("/proc/cpuinfo", (Path("/proc/cpuinfo"),)),
            Zone("its own directory", (hosts / "a",), is_deep=True, is_its_own=True),
            Zone("what the user copies from it", (shared / "a" / "returned",), is_deep=True, is_its_own=True),
            Zone("what its guest may read", (shared / "a",), is_deep=True),
            Zone("its console's file", (self.rundir / "consoles" / "a",), is_deep=True, is_its_own=True),
            Zone("another host's files", (hosts / "b", shared / "b", self.rundir / "consoles" / "b"), is_deep=True),
            Zone("the notes of why hosts were ended", (self.rundir / ended.DIRECTORY,), is_deep=True),
            Zone("the lab's records", (self.rundir,), is_deep=True),
            Zone("the user's state", (self.program.state, self.rundir.parent)),
        ]

    def processes(self) -> dict[str, int]:
        supervisor = lab_processes.supervisor(self.rundir)
        assert supervisor is not None
        found = {"the supervisor": supervisor, "another host's kernel": self.kernel("b")}
        clock = _clock(supervisor)
        return found if clock is None else {**found, "the clock": clock}


def _clock(supervisor: int) -> int | None:
    for number in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        if Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")[0].endswith(b"/clock"):
            return int(number)
    return None


@contextmanager
def grounds(user: str, time: str, topology: str = TOPOLOGY) -> Iterator[Ground]:
    """A lab that is up, on this private ground."""
    private = Path(os.environ[private_ground.PLACE])
    private_ground.require(private)
    if user == "root":
        place = Path(tempfile.mkdtemp(dir=private, prefix="root-"))
        place.chmod(0o755)
        program = Program(place / "state", environment={"MINIGTS_CACHE": str(private / "cache")})
        made = contextlib.nullcontext(program)
    else:
        made = made_for(free_id(), [each.name for each in (private / "cache").iterdir()])  # type: ignore[assignment]
    with made as program:
        place = program.state.parent
        ground = Ground(program, place, user, time, program.user or 0)
        if program.user is not None:
            give(place / "cache", program.user)
        ground.prepare(topology)
        try:
            ground.up()
            yield ground
        finally:
            program.run("down", "--all")


class Hostile:
    """The kernel of host `a`, in a tracer's hands, with a descriptor of every kind."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.refused: dict[str, str] = {}
        """What could not be opened, and why."""
        self._take()

    def _take(self) -> None:
        ground = self._ground
        self.pid = ground.kernel("a")
        self._still = ground.kernel("b")
        private_ground.require_devices(self.pid)
        os.kill(self._still, signal.SIGSTOP)  # so that nobody else changes anything
        try:
            self.traced = Traced(self.pid)
        except (Ended, OSError):
            os.kill(self._still, signal.SIGCONT)
            raise
        try:
            self._open()
        except (Ended, OSError):
            self.release()
            raise

    def _open(self) -> None:
        """A descriptor of every kind."""
        self.kinds = kinds(self.pid, "a")
        for name, path, flags in self._places():
            self._keep(name, self.traced.call(257, CWD, self.traced.put(0, path.encode() + b"\0"), flags, 0o600))
        self._make_own()

    def _keep(self, name: str, result: int) -> None:
        if result < 0:
            self.refused[name] = named(result)
        else:
            self.kinds[name] = result

    def _places(self) -> Iterable[tuple[str, str, int]]:
        ground, to_read, both, only_path = self._ground, os.O_RDONLY, os.O_RDWR, 0o10000000
        own, shared = ground.rundir / "hosts" / "a", ground.rundir / "shared" / "a"
        yield "the image, opened to read", str(ground.image), to_read
        yield "the image, opened to write", str(ground.image), both
        yield "the image's folder", str(ground.image.parent), to_read
        yield "the kernel's program", str(ground.kernel_directory / "linux"), to_read
        yield "the kernel's folder", str(ground.kernel_directory), to_read
        yield "/dev/null, opened to write", "/dev/null", both
        yield "/dev/urandom", "/dev/urandom", to_read
        yield "/dev/random", "/dev/random", to_read
        yield "/proc/cpuinfo", "/proc/cpuinfo", to_read
        yield "/dev/shm", "/dev/shm", to_read
        yield "its own directory", str(own), to_read
        yield "its kernel's directory", str(own / "own"), to_read
        yield "its control socket, as O_PATH", str(own / "control.sock"), only_path
        yield "what its guest may read", str(shared), to_read
        yield "what the user copies from it", str(shared / "returned"), to_read
        yield "a new file of its own", str(own / "made"), both | os.O_CREAT
        yield "a new file that the user may copy", str(shared / "returned" / "made"), both | os.O_CREAT
        yield "the user's file, as O_PATH", str(ground.home / "file"), only_path
        yield "the user's folder, as O_PATH", str(ground.home / "folder"), only_path
        yield "another host's disk, as O_PATH", str(ground.rundir / "hosts" / "b" / command_line.DISK), only_path
        yield "the lab's record, as O_PATH", str(ground.rundir / paths.LAB), only_path
        yield "the clock's socket, as O_PATH", str(ground.rundir / clock_process.SOCKET), only_path
        yield "the user's file", str(ground.home / "file"), to_read
        yield "the user's folder", str(ground.home / "folder"), to_read
        yield "another host's disk", str(ground.rundir / "hosts" / "b" / command_line.DISK), to_read
        yield "the lab's record", str(ground.rundir / paths.LAB), to_read
        yield "/proc", "/proc", to_read
        yield "/", "/", to_read

    def _make_own(self) -> None:
        call, put, peek, box = self.traced.call, self.traced.put, self.traced.peek, self.traced.box
        self._keep("a memfd of its own", call(319, put(0, b"own\0"), 2))
        self._keep("an epoll of its own", call(291, 0))
        self._keep("an eventfd of its own", call(290, 0, 0))
        self._keep("a timerfd of its own", call(283, 1, 0))
        self._keep("a signalfd of its own", call(289, -1, put(0, bytes(8)), 8, 0))
        if call(293, put(0, bytes(8)), 0x800) == 0:
            reader, writer = struct.unpack("=2i", peek(box, 8))
            self.kinds |= {"a new pipe, to read": reader, "a new pipe, to write": writer}
        if call(53, 1, 1 | 0x800, 0, put(0, bytes(8))) == 0:
            self.kinds["a new pair of sockets"] = struct.unpack("=2i", peek(box, 8))[0]

    def release(self) -> None:
        """Let both kernels go on."""
        with contextlib.suppress(Ended, OSError):
            self.traced.release()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._still, signal.SIGCONT)

    def again(self, *, as_new: bool = False) -> None:
        """Another kernel of the same host; a lab as new where that does not start."""
        self.release()
        if as_new or self._ground.program.run("restart", "a").returncode != 0:
            self._ground.again()
        self._take()

    def paths(self) -> dict[str, Path]:
        """What is tried by its path."""
        ground = self._ground
        return {
            "the user's file": ground.home / "file",
            "the user's folder": ground.home / "folder",
            "the image": ground.image,
            "the kernel's program": ground.kernel_directory / "linux",
            "the kernel's folder": ground.kernel_directory,
            "the clock": next(ground.cache.glob("clocks/*/clock")),
            "/dev/null": Path("/dev/null"),
            "/dev/urandom": Path("/dev/urandom"),
            "/proc/cpuinfo": Path("/proc/cpuinfo"),
            "another host's disk": ground.rundir / "hosts" / "b" / command_line.DISK,
            "another host's directory": ground.rundir / "hosts" / "b",
            "the lab's record": ground.rundir / paths.LAB,
            "its console's file": ground.rundir / "consoles" / "a" / paths.CONSOLE_LOG,
            "its own directory": ground.rundir / "hosts" / "a",
            "its kernel's directory": ground.rundir / "hosts" / "a" / "own",
            "its control socket": ground.rundir / "hosts" / "a" / paths.CONTROL_SOCKET,
            "what its guest may read": ground.rundir / "shared" / "a",
        }


@dataclass
class Tried:
    """What came of all calls of a ground."""

    ground: str = ""
    calls: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """What could not be opened, and why."""
    results: dict[str, int] = field(default_factory=dict)
    """How often each result came."""
    effects: list[Effect] = field(default_factory=list)


class Trial:
    """Makes one call after the other, and looks at the machine after each."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._hostile, self.came = ground, Hostile(ground), Tried(f"{ground.user}, {ground.time} time")
        self._ends: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        self._zones, self._processes = self._ground.zones(), self._ground.processes()
        self._before = self._look()

    def _look(self) -> State:
        return look(self._zones, self._processes, self._hostile.pid)

    def every_call(self, only: str = "") -> Tried:
        """Those whose words `CALL by DESCRIPTOR` match `only`."""
        for name, path in self._hostile.paths().items():
            for call in BY_PATH:
                if re.search(only, f"{call.name} by path: {name}"):
                    self._try(call, f"path: {name}", path)
        for name in sorted(self._hostile.kinds, key=_reaches_others):
            chosen = [call for call in BY_DESCRIPTOR if re.search(only, f"{call.name} by {name}")]
            for call in chosen:
                is_message = _reaches_others(name)[0] and REACHES_OTHERS.search(call.name) is not None
                if name in self._hostile.kinds and not (is_message and self._ends.get(name, 0) >= ENOUGH_ENDS):
                    self._try(call, name, None)
            if name in ITS_OWN and chosen:
                self._again(as_new=True)
        self._hostile.release()
        self.came.refused = self._hostile.refused
        return self.came

    def _try(self, call: Call, name: str, path: Path | None) -> None:
        traced, has_ended = self._hostile.traced, False
        try:
            it = self._hostile.kinds[name] if path is None else traced.put(4096, str(path).encode() + b"\0")
            result = named(call.by(traced, it))
        except Ended:
            result, has_ended = "ended", True
        after = self._look()
        if result == "done" and _reaches_others(name)[0] and REACHES_OTHERS.search(call.name):
            after = self._settled(after)
        found = changes(self._before, after)
        has_ended = has_ended or not runs(self._hostile.pid)
        if has_ended:
            found = {Change("the host itself", "its kernel ends")}
        self.came.calls += 1
        self.came.results[result] = self.came.results.get(result, 0) + 1
        if found:
            words = tuple(sorted(map(str, found)))
            self.came.effects.append(Effect(call.name, name, self._ground.user, self._ground.time, words))
            sys.stderr.write(f"{self.came.ground}: {call.name} by {name}: {'; '.join(words)}\n")
        if has_ended:
            self._ends[name] = self._ends.get(name, 0) + 1
            self._again()
        elif found:
            if call.undo is not None and path is None:
                call.undo(traced, it)
            restore(self._before, after)
            self._before = self._look()

    def _settled(self, state: State) -> State:
        """The state when nothing has changed for a moment."""
        for _ in range(20):
            time.sleep(SETTLES_S)
            earlier, state = state, self._look()
            if not changes(earlier, state):
                break
        return state

    def _again(self, *, as_new: bool = False) -> None:
        self._hostile.again(as_new=as_new)
        self._begin()


def _reaches_others(name: str) -> tuple[bool, bool, str]:
    """Descriptors on which another process reads come last, and before them what a kernel ruins for itself."""
    return "the clock's" in name or name in WITH_OTHERS, name in ITS_OWN, name


def main() -> None:
    user, time_word, *only = sys.argv[1:]
    with grounds(user, time_word) as ground:
        sys.stdout.write(json.dumps(asdict(Trial(ground).every_call(*only))) + "\n")


if __name__ == "__main__":
    main()

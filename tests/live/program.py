"""The program as a user starts it, and what it must not leave behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minigts.machine import shell

PROJECT = Path(__file__).parents[2]
TOPOLOGIES = PROJECT / "topologies"
KEY = "folders.key"
"""The file of the state directory with the key that signs results folders (results/gate.py)."""
LIMIT_S = 240.0
PATIENCE_S = 120.0
"""For what comes by itself, and soon where nothing else runs: nobody waits longer than it takes, and a busy machine has
to be waited for."""
SPIN_AT_MOST_S = 3600


def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Whether `condition` came to hold in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.03)
    return True


@contextlib.contextmanager
def spinning(programs: int) -> Iterator[None]:
    """Meanwhile so many programs use this machine's processors as much as they can; each ends by itself in any case."""
    text = f"import time\nend = time.monotonic() + {SPIN_AT_MOST_S}\nwhile time.monotonic() < end: pass"
    argv = [sys.executable, "-ISc", text]
    started = [
        shell.start(argv, output=subprocess.DEVNULL, new_session=False, dies_with_parent=True) for _ in range(programs)
    ]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


@dataclass(frozen=True)
class Program:
    """`minigts` with a state directory of its own, as the user `user` (None: the one who runs the tests)."""

    state: Path
    python: Path = Path(sys.executable)
    project: Path = PROJECT
    user: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = Path("/")
    """Where it is started; the default does not depend on who runs the tests."""
    limit_s: float = LIMIT_S
    """How long it may run; a longer run is a failure."""

    def start(
        self,
        *arguments: str,
        main: Sequence[str] = ("-m", "minigts"),
        stdin: int = subprocess.DEVNULL,
        terminal: int | None = None,
    ) -> subprocess.Popen[str]:
        """Start it, and do not wait. `main` says to Python what the program is; `terminal` takes its output, too."""
        argv = [str(self.python), "-P", *main, *arguments]
        streams = {"stdin": stdin} if terminal is None else dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
        return subprocess.Popen(argv, text=True, **(self._settings() | streams))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever its exit code."""
        started = self.start(*arguments)
        try:
            stdout, stderr = started.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            started.kill()
            raise
        return subprocess.CompletedProcess(arguments, started.returncode, stdout, stderr)

    def succeeds(self, *arguments: str) -> str:
        """Run it, demand exit code 0, and return what it said on stdout."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def rundir(self, lab: str) -> Path:
        return self.state / "labs" / lab

    def _settings(self) -> dict[str, Any]:
        """Its import path does not depend on where the tests are."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.project / "tools"),
            "MINIGTS_STATE": str(self.state),
            **self.environment,
        }
        return {
            "env": environment,
            "cwd": self.directory,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "user": self.user,
            "group": self.user,
            "extra_groups": None if self.user is None else [],
        }


@dataclass(frozen=True)
class Traces:
    """What a lab may leave behind on this machine, as it was at one moment: so that later there is nothing new."""

    state: Path
    shared_memory: frozenset[str]
    processes: dict[int, str] = field(default_factory=dict)
    """Process id -> start time, of every process of the lab that has been seen."""

    @classmethod
    def before(cls, state: Path) -> Traces:
        return cls(state, _shared_memory())

    def look(self) -> None:
        """Take note of the lab's processes that run now, the kernels' own user space among them."""
        ours = with_children(processes_of(self.state))
        self.processes.update((pid, started) for pid in ours if (started := start_time(pid)))

    def left(self, but: str = "") -> list[str]:
        """What is left of the lab after some patience, `but` for that folder of its state; empty when nothing is."""
        until(lambda: not self._now(but))
        return self._now(but)

    def _now(self, but: str) -> list[str]:
        alive = [pid for pid, started in self.processes.items() if start_time(pid) == started]
        ours = processes_of(self.state)
        return [
            *(f"process {pid}" for pid in {*alive, *ours}),
            *(f"socket {line}" for line in _unix_sockets() if str(self.state) in line),
            *(f"file {path}" for path in self._files() if path.parts[0] != but),
            *(f"/dev/shm/{name}" for name in self._shared_memory_left(ours)),
        ]

    def _shared_memory_left(self, ours: Iterable[int]) -> frozenset[str]:
        """But what a process that is not the lab's has mapped: a test that runs beside this one, say."""
        new = _shared_memory() - self.shared_memory
        if not new:
            return new
        return new - _mapped_by_others(with_children(ours), new)

    def _files(self) -> list[Path]:
        """Within the state directory, where the folder of labs and the key that signs results folders may stay."""
        stays = (self.state / "labs", self.state / KEY)
        return [path.relative_to(self.state) for path in self.state.rglob("*") if path not in stays]


def kills_at_random(out: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """`bench/run kills` with these words: how it ended, and its trials, which it keeps in the folder `out`."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bench.kills", *words, "--out", str(out)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'tools'}:{PROJECT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    (kept,) = out.glob("kills-*.jsonl")
    return done, [json.loads(line) for line in kept.read_text().splitlines()]


def processes_of(state: Path) -> list[int]:
    """Processes that have this state directory, or a run directory in it, in their environment."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            settings = (directory / "environ").read_bytes().split(b"\0")
            within = f"MINIGTS_RUNDIR={state}/".encode()
            if f"MINIGTS_STATE={state}".encode() in settings or any(each.startswith(within) for each in settings):
                found.append(int(directory.name))
    return [pid for pid in found if pid != os.getpid()]


def with_children(processes: Iterable[int]) -> set[int]:
    """These processes and all below them."""
    parents, found = _parents(), set(processes)
    while children := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= children
    return found


def _parents() -> dict[int, int]:
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
    return found


def start_time(pid: int) -> str:
    """When a process started, in clock ticks; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _unix_sockets() -> list[str]:
    return Path("/proc/net/unix").read_text().splitlines()


def _shared_memory() -> frozenset[str]:
    """Files: a lab makes no directory there, as others may."""
    return frozenset(path.name for path in Path("/dev/shm").iterdir() if not path.is_dir())


def _mapped_by_others(than: set[int], names: Iterable[str]) -> set[str]:
    """Which of these files of shared memory other processes have mapped, whatever their names were at that moment."""
    mapped = set()
    for pid in _parents().keys() - than:
        with contextlib.suppress(OSError):
            mapped.update(re.findall(r" (\d+) +/dev/shm/", Path(f"/proc/{pid}/maps").read_text()))
    return {name for name in names if _inode(Path("/dev/shm", name)) in mapped}


def _inode(path: Path) -> str:
    """Empty when it is gone."""
    try:
        return str(path.stat().st_ino)
    except OSError:
        return ""


def kernels(program: Program, lab: str = "pair") -> dict[str, int]:
    """The process ids of a lab's kernels, by host: of each the first, which all others of it come from."""
    found: dict[str, int] = {}
    directory = f"MINIGTS_RUNDIR={program.rundir(lab)}".encode()
    for pid in sorted(processes_of(program.state), reverse=True):
        with contextlib.suppress(OSError):
            named = re.search(rb"/hosts/([^/\0]+)/disk/disk\.cow", Path(f"/proc/{pid}/cmdline").read_bytes())
            if named and directory in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[named[1].decode()] = pid
    return found


def kernel(program: Program, lab: str, host: str) -> int:
    """The process id of a host's kernel, which runs."""
    return kernels(program, lab)[host]

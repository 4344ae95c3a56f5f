"""Control groups (cgroups(7)) that limit processes and all that they start: a share of a processor, memory, and the
number of processes and threads.

A share's files are `cpu.cfs_quota_us` and `cpu.cfs_period_us` in version 1 and `cpu.max` in version 2 (the kernel's
documentation: admin-guide/cgroup-v1, scheduler/sched-bwc.rst, and admin-guide/cgroup-v2.rst). On most machines only
root may make a group of the controller `cpu`. A group that has used up its quota waits for the next period, even on an
idle machine. When a group needs more memory than its limit, the kernel ends one of its processes. At the limit of
processes clone(2) fails with EAGAIN.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PERIOD_US = 20_000
"""The period. It is the shortest in which the smallest share, 0.05, is at least 1 ms, the kernel's smallest quota. A
host that has used up its quota stands still for the rest of a period; a short period resembles a slow processor."""
MEMBERS = "cgroup.procs"
MEMORY_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
PROCESSES_FILE = "pids.max"
BUSY_PAUSE_S = 0.05


@dataclass(frozen=True)
class CgroupPlace:
    """A control group in which groups with a quota can be made."""

    parent: Path
    version: Literal[1, 2]

    def make(self, name: str, share: float) -> Path:
        """Make the group of that name, whose processes together get `share` processors. Raises OSError."""
        group = self.parent / name
        group.mkdir(exist_ok=True)
        quota_us = round(share * PERIOD_US)
        if self.version == 2:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        return group


def place(proc: Path = Path("/proc/self")) -> CgroupPlace | str:
    """Where this process can make groups with a quota; or one sentence that says why it cannot."""
    return first_place("cpu", "a quota", lambda found, name: found.make(name, 0.5), proc)


def first_place(
    controller: str, what: str, make: Callable[[CgroupPlace, str], object], proc: Path
) -> CgroupPlace | str:
    """The first place in which `make` can make a group, which is removed again; or one sentence that says why there is
    none. `what` names the limit in that sentence."""
    reason = f"this machine has no control groups with the controller `{controller}`"
    for found in candidates(proc, controller):
        trial = f"minigts-trial-{os.getpid()}"
        try:
            make(found, trial)
        except OSError as error:
            reason = f"no control group with {what} can be made in {found.parent} ({error.strerror})"
        else:
            return found
        finally:
            with contextlib.suppress(OSError):
                (found.parent / trial).rmdir()
    return reason


def prefix(rundir: Path) -> str:
    """The prefix of the names of a lab's groups."""
    return f"minigts-{hashlib.sha256(str(rundir).encode()).hexdigest()[:12]}-"


def remove(
    prefix: str,
    proc: Path = Path("/proc/self"),
    controllers: Sequence[str] = ("cpu", "memory", "pids"),
    patience_s: float = 0.0,
) -> list[str]:
    """Remove the controllers' groups whose names begin with `prefix` and whose processes have ended. A group is busy
    while a process that was killed gives back its memory: all together are waited for `patience_s`. Returns one
    sentence for each that could not be removed."""
    left, until = [], time.monotonic() + patience_s
    for found in (place for controller in controllers for place in candidates(proc, controller)):
        for group in sorted(found.parent.glob(f"{prefix}*")):
            try:
                _remove(group, until)
            except FileNotFoundError:
                continue  # in version 2 one group may have several limits
            except OSError as error:
                left.append(f"control group {group} cannot be removed: {error.strerror}")
    return left


def _remove(group: Path, until: float) -> None:
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= until:
                raise
        time.sleep(BUSY_PAUSE_S)


def join(group: Path) -> int:
    """Open a descriptor for `enter`, which a new process calls before it executes its program. Raises OSError."""
    return os.open(group / MEMBERS, os.O_WRONLY | os.O_CLOEXEC)


def enter(descriptor: int) -> None:
    """Move the calling process into the group."""
    os.write(descriptor, b"0")


def candidates(proc: Path, controller: str = "cpu") -> Iterator[CgroupPlace]:
    """The groups that this process is in, those around them, and the topmost, wherever the controller is mounted."""
    own = dict(_own_groups(proc))
    for line in (proc / "mounts").read_text().splitlines():
        _, mounted, kind, options, *_ = line.split()
        top = Path(mounted)
        if kind == "cgroup" and controller in options.split(","):
            yield from (CgroupPlace(each, 1) for each in _from(top, own.get(controller, "/")))
        elif kind == "cgroup2":
            yield from (CgroupPlace(each, 2) for each in _from(top, own.get("", "/")) if _hands_on(each, controller))


def _own_groups(proc: Path) -> Iterator[tuple[str, str]]:
    """Controller and path, from lines such as `4:cpu,cpuacct:/lab`, and in version 2 `0::/user.slice`."""
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        yield from ((controller, path) for controller in controllers.split(","))


def _from(top: Path, path: str) -> list[Path]:
    """This process's group, the one around it, and the topmost; each once, and none outside the mount."""
    own = top / path.strip("/")
    near = [each for each in (own, own.parent) if each.is_relative_to(top) and each.is_dir()]
    return list(dict.fromkeys((*near, top)))


def _hands_on(group: Path, controller: str) -> bool:
    """Whether the groups below have the controller; below the top this is never so in a group with processes."""
    try:
        return controller in (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def memory_place(proc: Path = Path("/proc/self")) -> CgroupPlace | str:
    """Where this process can make groups with a limit of memory; or one sentence that says why it cannot."""
    return first_place("memory", "a limit of memory", lambda found, name: limit_memory(found, name, 1024), proc)


def limit_memory(where: CgroupPlace, name: str, memory_mb: int) -> Path:
    """Make the group of that name, whose processes may use so much together, in MB of 2^20 bytes. Raises OSError."""
    return _limited(where, name, MEMORY_FILES[where.version], memory_mb << 20)


def process_place(proc: Path = Path("/proc/self")) -> CgroupPlace | str:
    """Where this process can make groups with a limit on processes; or one sentence that says why it cannot."""
    return first_place("pids", "a limit on processes", lambda found, name: limit_processes(found, name, 64), proc)


def limit_processes(where: CgroupPlace, name: str, most: int) -> Path:
    """Make the group of that name, with at most `most` processes and threads. Raises OSError."""
    return _limited(where, name, PROCESSES_FILE, most)


def _limited(where: CgroupPlace, name: str, file: str, most: int) -> Path:
    group = where.parent / name
    group.mkdir(exist_ok=True)
    (group / file).write_text(str(most))
    return group

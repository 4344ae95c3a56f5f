"""How many more processes and threads this user may start, by limits of the user, the machine and control groups."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minigts.machine import memory
from minigts.machine.proc import PROC, text_of


@dataclass(frozen=True)
class Limit:
    """A limit on processes and threads: how many more may be started now, and how many there may be in total."""

    name: str
    free: int
    whole: int


def limits(proc: Path = PROC) -> tuple[Limit, ...]:
    """Every limit on processes and threads, the least free first. Limits that cannot be read are left out."""
    return tuple(sorted((*_user(proc), *_machine(proc), *_groups(proc)), key=lambda limit: limit.free))


def _user(proc: Path) -> Iterator[Limit]:
    """RLIMIT_NPROC, which counts the user's threads and does not limit root (setrlimit(2))."""
    whole, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() == 0 or whole == resource.RLIM_INFINITY:
        return
    used = 0
    for process in proc.glob("[0-9]*"):
        fields = dict(line.split(":", 1) for line in text_of(process / "status").splitlines() if ":" in line)
        if fields.get("Uid", "").split()[:1] == [str(os.getuid())]:
            used += int(fields.get("Threads", "1"))
    yield Limit("this user's limit of processes (ulimit -u)", max(0, whole - used), whole)


def _machine(proc: Path) -> Iterator[Limit]:
    """The limits of the whole machine. The fourth field of loadavg is `running/all` of its threads (proc(5))."""
    fields = text_of(proc / "loadavg").split()
    used = int(fields[3].partition("/")[2]) if len(fields) > 3 else 0
    for name in ("pid_max", "threads-max"):
        digits = text_of(proc / "sys" / "kernel" / name).strip()
        if digits.isdigit():
            yield Limit(f"this machine's kernel.{name}", max(0, int(digits) - used), int(digits))


def _groups(proc: Path) -> Iterator[Limit]:
    """This process's control group and all above it, as far as they can be seen from here."""
    for _, top, directory in memory.group_directories(proc, "pids"):
        for group in (directory, *directory.parents):
            whole, used = (text_of(group / name).strip() for name in ("pids.max", "pids.current"))
            if whole.isdigit() and used.isdigit():
                yield Limit(f"pids.max of the control group {group}", max(0, int(whole) - int(used)), int(whole))
            if group == top:
                break

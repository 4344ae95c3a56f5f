"""Reads /proc (proc(5)), without judging what it finds and without signalling a process.

A process may end between any two reads, so a file that cannot be read counts as empty.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PROC = Path("/proc")
USER_HZ = 100
"""Ticks per second in which /proc/stat counts on every x86 (proc(5)), hosts included."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def text_of(path: Path) -> str:
    """The text of a file; empty when it is absent, may not be read, or its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def stat_fields(pid: int | str, proc: Path = PROC) -> list[str]:
    """The fields of /proc/PID/stat from field 3 on (state, parent, …), after the program's name, which may hold any
    character. Empty when the process has ended.
    """
    return text_of(proc / str(pid) / "stat").rpartition(")")[2].split()


def parent(pid: int, proc: Path = PROC) -> int | None:
    """The id of a process's parent; None when the process has ended."""
    fields = stat_fields(pid, proc)
    return int(fields[1]) if fields else None


def family(roots: Iterable[int], proc: Path = PROC) -> Iterator[int]:
    """The process ids `roots` and those of all their descendants, by field 4 of each process's stat."""
    children: dict[int, list[int]] = {}
    for directory in proc.glob("[0-9]*"):
        fields = stat_fields(directory.name, proc)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(directory.name))
    waiting, seen = list(roots), set()
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            waiting.extend(children.get(pid, ()))


def used_s(pid: int, proc: Path = PROC, *, with_children: bool = True) -> float:
    """Processor seconds of a process and of its children that have ended, by fields 14 to 17 of its stat."""
    fields = stat_fields(pid, proc)
    return sum(map(int, fields[11 : 15 if with_children else 13])) / TICKS_PER_SECOND


def waited_s(pid: int, proc: Path = PROC) -> float:
    """For how long a process was ready and had no processor: the second number of its schedstat, in ns
    (Documentation/scheduler/sched-stats.rst); 0 where the kernel does not count that."""
    fields = text_of(proc / str(pid) / "schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def shared_files_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """Bytes in the files of /dev/shm that these processes have open, mapped or not, each file counted once. A User-Mode
    Linux kernel keeps its memory in such a file, which it unlinks.
    """
    held: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in (proc / str(pid) / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()).startswith("/dev/shm/"):
                        state = descriptor.stat()
                        held[state.st_ino] = state.st_blocks * 512
    return sum(held.values())


def boot_id() -> str:
    """The id of this machine's current boot (random(4)), for facts such as process ids that hold for one boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def runs_in_group(group: int, proc: Path = PROC) -> bool:
    """Whether any process of a process group still runs, by field 5 of its stat.

    A process that has ended stays a member until its parent waits for it. If the parent has ended, too, the machine's
    first process has to do so, which in a container may take seconds, or never happen.
    """
    every = (stat_fields(directory.name, proc) for directory in proc.glob("[0-9]*"))
    return any(fields[2] == str(group) and fields[0] not in "ZX" for fields in every if fields)


def is_stopped(pid: int, proc: Path = PROC) -> bool:
    """Whether a process has been stopped by a signal, or has ended."""
    fields = stat_fields(pid, proc)
    return not fields or fields[0] in "TZX"

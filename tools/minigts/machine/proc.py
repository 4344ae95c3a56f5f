"""How /proc is read (proc(5)). Nothing is judged here, and nobody signalled.

A process may end between any two reads: what cannot be read is empty, and counts as nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def text_of(path: Path) -> str:
    """What a file says; empty when it is absent, closed to us, or its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def stat_fields(pid: int | str, proc: Path = PROC) -> list[str]:
    """Of /proc/PID/stat what follows the program's name, which may hold anything: state, parent, …; field 3 is the
    first. Empty when the process has ended.
    """
    return text_of(proc / str(pid) / "stat").rpartition(")")[2].split()


def parent(pid: int, proc: Path = PROC) -> int | None:
    """By a process's own word; None when it has ended."""
    fields = stat_fields(pid, proc)
    return int(fields[1]) if fields else None


def family(roots: Iterable[int], proc: Path = PROC) -> Iterator[int]:
    """`roots` and everything below them, by every process's own word on its parent: field 4 of its stat."""
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
    """Processor time of a process, and of its children that have ended: fields 14 to 17 of its stat, in seconds."""
    fields = stat_fields(pid, proc)
    return sum(map(int, fields[11 : 15 if with_children else 13])) / TICKS_PER_SECOND


def shared_files_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """What the files in /dev/shm hold that these processes have open, each file once, mapped or not. A User-Mode Linux
    kernel keeps its memory in one that is unlinked.
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
    """Of this machine as it has booted: random(4). Process ids and trials hold for one boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def runs_in_group(group: int, proc: Path = PROC) -> bool:
    """Whether any process of a process group still runs; field 5 of its stat.

    One that has ended stays a member until its parent has asked for it. Where the parent has ended, too, that is up to
    the machine's first process, which in a container may take seconds, or never do it.
    """
    every = (stat_fields(directory.name, proc) for directory in proc.glob("[0-9]*"))
    return any(fields[2] == str(group) and fields[0] not in "ZX" for fields in every if fields)


def is_stopped(pid: int, proc: Path = PROC) -> bool:
    """Whether a process has been stopped by a signal, or has ended."""
    fields = stat_fields(pid, proc)
    return not fields or fields[0] in "TZX"

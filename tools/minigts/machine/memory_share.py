"""A limit of memory for some processes and all that they start: a control group (cgroups(7)).

The files are `memory.limit_in_bytes` in version 1 of control groups and `memory.max` in version 2, where it may be the
group that has a quota of processors, too. When more is needed than is left, the kernel ends a process of the group.
"""

from __future__ import annotations

from pathlib import Path

from minigts.machine import processor_share
from minigts.machine.processor_share import Place, first_place

FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}


def place(proc: Path = Path("/proc/self")) -> Place | str:
    """Where groups with a limit can be made by this process; or why nowhere, in a sentence."""
    return first_place("memory", "a limit of memory", lambda found, name: make(found, name, 1024), proc)


def make(where: Place, name: str, memory_mb: int) -> Path:
    """The group of that name, in which all together have so much, in MB of 2^20 bytes. Raises OSError."""
    group = where.parent / name
    group.mkdir(exist_ok=True)
    (group / FILES[where.version]).write_text(str(memory_mb << 20))
    return group


def remove(prefix: str, proc: Path = Path("/proc/self")) -> list[str]:
    """As of processors: take away the groups whose names begin so; what could not be removed, a sentence each."""
    return processor_share.remove(prefix, proc, "memory")

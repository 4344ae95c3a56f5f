"""A limit of memory for processes and all that they start: a control group (cgroups(7)).

The files are `memory.limit_in_bytes` in version 1 of control groups and `memory.max` in version 2, where the same group
may also have a quota of processors. When the group's memory runs out, the kernel kills one of its processes.
"""

from __future__ import annotations

from pathlib import Path

from minigts.machine import processor_share
from minigts.machine.processor_share import Place, first_place

FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}


def place(proc: Path = Path("/proc/self")) -> Place | str:
    """Where this process can make groups with a limit of memory; or one sentence that says why it cannot."""
    return first_place("memory", "a limit of memory", lambda found, name: make(found, name, 1024), proc)


def make(where: Place, name: str, memory_mb: int) -> Path:
    """Make the group of that name, whose processes may use so much together, in MB of 2^20 bytes. Raises OSError."""
    group = where.parent / name
    group.mkdir(exist_ok=True)
    (group / FILES[where.version]).write_text(str(memory_mb << 20))
    return group


def remove(prefix: str, proc: Path = Path("/proc/self")) -> list[str]:
    """Remove the groups whose names begin with `prefix`; see `processor_share.remove`."""
    return processor_share.remove(prefix, proc, "memory")

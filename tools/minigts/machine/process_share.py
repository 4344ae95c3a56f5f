"""A limit on the number of processes and threads of a process and all that it starts: a control group (cgroups(7)).

The file is `pids.max` in both versions. At the limit clone(2) fails with EAGAIN.
"""

from __future__ import annotations

from pathlib import Path

from minigts.machine import processor_share
from minigts.machine.processor_share import Place, first_place

FILE = "pids.max"


def place(proc: Path = Path("/proc/self")) -> Place | str:
    """Where this process can make groups with a limit on processes; or one sentence that says why it cannot."""
    return first_place("pids", "a limit on processes", lambda found, name: make(found, name, 64), proc)


def make(where: Place, name: str, most: int) -> Path:
    """Make the group of that name, with at most `most` processes and threads. Raises OSError."""
    group = where.parent / name
    group.mkdir(exist_ok=True)
    (group / FILE).write_text(str(most))
    return group


def remove(prefix: str, proc: Path = Path("/proc/self")) -> list[str]:
    """Remove the groups whose names begin with `prefix`; see `processor_share.remove`."""
    return processor_share.remove(prefix, proc, "pids")

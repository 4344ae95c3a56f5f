"""A limit on how many processes and threads some process and all that it starts may be: a control group (cgroups(7)).

The file is `pids.max` in both versions. Whoever is at the limit gets no child: clone(2) fails with EAGAIN.
"""

from __future__ import annotations

from pathlib import Path

from minigts.machine import processor_share
from minigts.machine.processor_share import Place, first_place

FILE = "pids.max"


def place(proc: Path = Path("/proc/self")) -> Place | str:
    """Where groups with a limit can be made by this process; or why nowhere, in a sentence."""
    return first_place("pids", "a limit on processes", lambda found, name: make(found, name, 64), proc)


def make(where: Place, name: str, most: int) -> Path:
    """The group of that name, in which there are at most so many. Raises OSError."""
    group = where.parent / name
    group.mkdir(exist_ok=True)
    (group / FILE).write_text(str(most))
    return group


def remove(prefix: str, proc: Path = Path("/proc/self")) -> list[str]:
    """As of processors: take away the groups whose names begin so; what could not be removed, a sentence each."""
    return processor_share.remove(prefix, proc, "pids")

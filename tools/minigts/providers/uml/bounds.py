"""How much of this machine one kernel may take, with all that it starts. Standard library only.

Limits of its processes (setrlimit(2)), which they inherit and cannot raise: of files and of each one's own memory. How
many processes they are is counted for a user (RLIMIT_NPROC), so only a user namespace of their own makes that a limit
of theirs; root is never held by it, and has a control group instead, as whoever else may make one.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from minigts.machine import process_share, processor_share
from minigts.machine.contained import Namespaces
from minigts.machine.processor_share import Place

PROCESSES = 1024
"""And threads. Each program of a guest's is one stub process here; a host that runs Docker has some thirty."""
OPEN_FILES = 16_384
"""A kernel holds one for each stub, and one for each file that its guest has read by hostfs."""
PRIVATE_MB = 512
"""Of each process, beside what it shares: a kernel's guest has its memory in a file, which it maps; 19 MB were seen."""
STACK_BYTES = 8 << 20
"""A kernel would set this limit itself, which is refused."""
ROOM_BYTES = 64 << 20


@dataclass(frozen=True)
class Bounds:
    largest_file_bytes: int
    processes: int | None
    """None: counted by a control group, or not at all."""

    def enter(self) -> None:
        """Hold the calling process, and all that it starts, to it."""
        for limit, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, self.largest_file_bytes),
            (resource.RLIMIT_NOFILE, OPEN_FILES),
            (resource.RLIMIT_DATA, PRIVATE_MB << 20),
            (resource.RLIMIT_STACK, STACK_BYTES),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
            *([] if self.processes is None else [(resource.RLIMIT_NPROC, self.processes)]),
        ):
            _, hard = resource.getrlimit(limit)
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (bound, bound))


def of(memory_mb: int, disk: Path, inside: Namespaces) -> Bounds:
    """Of a kernel with that memory, whose disk is, or has behind it, the file `disk`: none of its files is larger."""
    size = max(memory_mb << 20, disk.stat().st_size)
    return Bounds(size + (size >> 8) + ROOM_BYTES, PROCESSES if inside.counts_apart else None)


class Groups:
    """The control groups in which a lab's kernels have their limit of processes, where such can be made."""

    def __init__(self, rundir: Path) -> None:
        self._prefix = processor_share.prefix(rundir)
        found = process_share.place()
        self._place = found if isinstance(found, Place) and not _would_leave(found) else None

    def make(self, name: str, group: str) -> Path | None:
        """That of a kernel, which will be in the group `group` too, if that is not empty; None where there is none."""
        if self._place is None:
            return None
        try:
            if group and self._place.version == 2:  # a process is in one group of that version
                (Path(group) / process_share.FILE).write_text(str(PROCESSES))
                return None
            return process_share.make(self._place, f"{self._prefix}{name}", PROCESSES)
        except OSError:
            return None

    def remove(self) -> None:
        """Those that hold no process any more."""
        if self._place is not None:
            process_share.remove(self._prefix)


def _would_leave(found: Place) -> bool:
    """Whether a process that joins a group there leaves the one that its whole lab is held to a share by."""
    own = next(processor_share.candidates(Path("/proc/self"), "pids"), None)
    return found.version == 2 and own is not None and own.parent.name.startswith("minigts-")

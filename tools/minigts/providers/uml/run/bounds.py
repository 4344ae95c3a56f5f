"""Limits on what one kernel, with all that it starts, may use of this machine. Standard library only.

Files and the private memory of each process have limits that processes inherit and cannot raise (setrlimit(2)). The
number of processes is counted for each user (RLIMIT_NPROC), so this limit works only within a user namespace, and never
for root. Root, and any other user who may make one, gets a control group instead.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from minigts.machine import cgroups
from minigts.machine.cgroups import CgroupPlace
from minigts.machine.contained import Namespaces

PROCESSES = 1024
"""Processes and threads. Each program of a guest is one stub process here; a host that runs Docker has some thirty."""
OPEN_FILES = 4096
"""Open files of each process; it was 16,384. A kernel holds up to three for each stub, and one for each file that its
guest reads by hostfs. Linux lets a user have as many descriptors under way in sockets as one process may have open."""
PENDING_SIGNALS = 1024
"""Signals that wait and timers (timer_create(2)), of which a kernel has one. Linux counts all of the user's, or, in a
user namespace, those in it."""
PRIVATE_MB = 512
"""Private memory of each process; 19 MB were seen. A guest's memory is a mapped file and does not count."""
STACK_BYTES = 8 << 20
"""The stack's limit, which a kernel would set itself if its filter of system calls allowed it."""
ROOM_BYTES = 64 << 20
"""Added to the size of a kernel's largest file."""


@dataclass(frozen=True)
class KernelBounds:
    largest_file_bytes: int
    processes: int | None
    """The limit of processes and threads; None if a control group counts them, or nothing."""
    private_mb: int = PRIVATE_MB

    def enter(self) -> None:
        """Limit the calling process and all that it starts."""
        for limit, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, self.largest_file_bytes),
            (resource.RLIMIT_NOFILE, OPEN_FILES),
            (resource.RLIMIT_DATA, self.private_mb << 20),
            (resource.RLIMIT_STACK, STACK_BYTES),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_SIGPENDING, PENDING_SIGNALS),
            (resource.RLIMIT_MEMLOCK, 0),
            *([] if self.processes is None else [(resource.RLIMIT_NPROC, self.processes)]),
        ):
            _, hard = resource.getrlimit(limit)
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (bound, bound))


def kernel_bounds(memory_mb: int, disk: Path, inside: Namespaces, shadow_mb: int = 0) -> KernelBounds:
    """The limits of a kernel with that memory, whose disk is the file `disk` or a copy-on-write file over it; its files
    are not larger than these. It may map so much private memory beside what any kernel may."""
    size = max(memory_mb << 20, disk.stat().st_size)
    processes = PROCESSES if inside.counts_apart else None
    return KernelBounds(size + (size >> 8) + ROOM_BYTES, processes, PRIVATE_MB + shadow_mb)


class Groups:
    """The control groups that limit the processes of a lab's kernels, where such groups can be made."""

    def __init__(self, rundir: Path) -> None:
        self._prefix = cgroups.prefix(rundir)
        found = cgroups.process_place()
        self._place = found if isinstance(found, CgroupPlace) and not _would_leave(found) else None

    def make(self, name: str, group: str) -> Path | None:
        """Make the group of a kernel; None where this is not possible. If `group` is not empty, the kernel will also be
        in that group, which in version 2 gets the limit itself."""
        if self._place is None:
            return None
        try:
            if group and self._place.version == 2:  # a process is in one group of that version
                (Path(group) / cgroups.PROCESSES_FILE).write_text(str(PROCESSES))
                return None
            return cgroups.limit_processes(self._place, f"{self._prefix}{name}", PROCESSES)
        except OSError:
            return None

    def remove(self) -> None:
        """Remove the groups that hold no process any more."""
        if self._place is not None:
            cgroups.remove(self._prefix, controllers=("pids",))


def _would_leave(found: CgroupPlace) -> bool:
    """Whether a process that joins a group there would leave the group that limits its whole lab."""
    own = next(cgroups.candidates(Path("/proc/self"), "pids"), None)
    return found.version == 2 and own is not None and own.parent.name.startswith("minigts-")

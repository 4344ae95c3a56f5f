"""Reads from a host's console which processes its kernel has killed since its start because memory had run out. The
host itself is not asked, since it may have no memory left to answer. Standard library only.

    Out of memory: Killed process 812 (bash) total-vm:7212kB, anon-rss:1024kB, … oom_score_adj:0
"""

from __future__ import annotations

import re
from pathlib import Path

from minigts.providers.uml.console import STARTED

_ENDED = re.compile(rb"Out of memory: Killed process (\d{1,10}) \(([ -~]{1,40}?)\) ")
"""A container that exceeds its own limit gives another message, `Memory cgroup out of memory`."""
ALL = 0.8
"""The touched part of its memory from which a kernel counts as full; the rest are reserves of its own."""
_SHARED = re.compile(r"^RssShmem:\s+(\d{1,12}) kB$", re.MULTILINE)


def ended(said: bytes) -> tuple[str, ...]:
    """The processes that the kernel has killed, from its console's output, in order: `bash[812]`."""
    _, _, since = said.rpartition(STARTED)
    return tuple(f"{name.decode()}[{number.decode()}]" for number, name in _ENDED.findall(since))


def in_words(processes: tuple[str, ...]) -> str:
    """A clause about these processes; empty if there are none."""
    if not processes:
        return ""
    many = "1 process," if len(processes) == 1 else f"{len(processes)} processes, the last"
    return f"its memory is exhausted, and its kernel has killed {many} {processes[-1]}"


def in_use(pid: int, memory_mb: int, proc: Path = Path("/proc")) -> str:
    """A clause if all of a kernel's memory is in use, by the shared memory of its process `pid`; otherwise, and if the
    process has ended, empty. A kernel that searches for free memory without end prints nothing.
    """
    try:
        found = _SHARED.search((proc / str(pid) / "status").read_text())
    except OSError:
        return ""
    is_full = found is not None and int(found[1]) >= ALL * memory_mb * 1024
    return f"all of its memory of {memory_mb} MB is in use" if is_full else ""

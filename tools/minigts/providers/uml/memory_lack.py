"""What a host's kernel has said on its console, since it was started, of memory that it lacked. The host is not asked:
it may have none left to answer with. Standard library only.

    Out of memory: Killed process 812 (bash) total-vm:7212kB, anon-rss:1024kB, … oom_score_adj:0
"""

from __future__ import annotations

import re
from pathlib import Path

from minigts.providers.uml.console import STARTED

_ENDED = re.compile(rb"Out of memory: Killed process (\d{1,10}) \(([ -~]{1,40}?)\) ")
"""A control group's own lack, as of a container with a limit, is said otherwise: `Memory cgroup out of memory`."""
ALL = 0.8
"""A kernel that has touched so much of its memory has all in use: what it keeps for itself is not touched at once."""
_SHARED = re.compile(r"^RssShmem:\s+(\d{1,12}) kB$", re.MULTILINE)


def ended(said: bytes) -> tuple[str, ...]:
    """Which processes a kernel has ended for want of memory, by what its console has said: `bash[812]`, in order."""
    _, _, since = said.rpartition(STARTED)
    return tuple(f"{name.decode()}[{number.decode()}]" for number, name in _ENDED.findall(since))


def in_words(processes: tuple[str, ...]) -> str:
    """A clause; empty where none was ended."""
    if not processes:
        return ""
    many = "1 process" if len(processes) == 1 else f"{len(processes)} processes, at last"
    return f"its memory is exhausted, for want of which its kernel has ended {many} {processes[-1]}"


def in_use(pid: int, memory_mb: int, proc: Path = Path("/proc")) -> str:
    """The same of a kernel's process that has all its memory in use, which lies in a file that it shares with its
    programs: one that looks for more without end says nothing. Empty where it has not, and for a process that is gone.
    """
    try:
        found = _SHARED.search((proc / str(pid) / "status").read_text())
    except OSError:
        return ""
    is_full = found is not None and int(found[1]) >= ALL * memory_mb * 1024
    return f"all of its memory of {memory_mb} MB is in use" if is_full else ""

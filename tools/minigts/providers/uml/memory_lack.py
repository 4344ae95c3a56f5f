"""What a host's kernel has said on its console, since it was started, of memory that it lacked. The host is not asked:
it may have none left to answer with. Standard library only.

    Out of memory: Killed process 812 (bash) total-vm:7212kB, anon-rss:1024kB, … oom_score_adj:0
"""

from __future__ import annotations

import re

from minigts.providers.uml.console import STARTED

_ENDED = re.compile(rb"Out of memory: Killed process (\d{1,10}) \(([ -~]{1,40}?)\) ")
"""A control group's own lack, as of a container with a limit, is said otherwise: `Memory cgroup out of memory`."""


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

"""A host whose kernel is taken over, as the machine outside sees it: see taken_kernel.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.machine.proc import stat_fields

from .program import Program, kernel, start_time

SCRIPT = (Path(__file__).parent / "taken_kernel.py").read_text()


def cache(place: Path) -> Path:
    """One that has the image alone, made in `place`: so hosts in real time run the image's kernel, which has /dev/mem.

    The full kernel has none. All that holds a kernel is the same for both.
    """
    place.mkdir(exist_ok=True)
    (place / "images").symlink_to(paths.cache_root() / "images")
    return place


def in_kernel(program: Program, lab: str, host: str, what: str, *words: object) -> dict[str, Any]:
    """What came of it in the kernel of this host."""
    argv = ("python3", "-c", SCRIPT, what, *map(str, words))
    return dict(json.loads(program.succeeds("exec", "--lab", lab, host, "--", *argv)))


def outlive(program: Program, lab: str, host: str, forks: int) -> tuple[dict[str, Any], dict[int, str]]:
    """Have the kernel wipe its environment, leave processes without a parent, and fork so often; what came of it, and
    all of its processes afterwards, with their start times."""
    pid = kernel(program, lab, host)
    begin, end = map(int, stat_fields(pid)[47:49])
    came = in_kernel(program, lab, host, "outlive", begin, end - begin, forks)
    return came, session(pid)


def session(leader: int) -> dict[int, str]:
    """Every process that is in the session of this one, by the machine's own word (field 6 of its stat)."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        fields = stat_fields(directory.name)
        if fields and int(fields[3]) == leader:
            found[int(directory.name)] = start_time(int(directory.name))
    return {pid: started for pid, started in found.items() if started}


def left(processes: dict[int, str]) -> list[int]:
    return [pid for pid, started in processes.items() if start_time(pid) == started]

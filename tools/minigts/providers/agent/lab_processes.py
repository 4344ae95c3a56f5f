"""Finds and ends the processes of a lab. A record names its supervisor; a mark shows all of them.

The mark is an environment variable, which a process may erase, and a hard limit (`brand`), which neither a process
without privilege nor its children can raise again.

A process id alone proves nothing, since ids are used again: a record also holds the start time and the boot, and a
damaged record counts as none. Before a process is signalled it is held by a pidfd (pidfd_open(2)) while its start time
and its mark are checked, so no process of others is ever signalled, whatever a record says.

No supervisor escapes `end`: a supervisor writes its record before it reads launch.json, and `end` removes launch.json
before it looks for the record.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from minigts import paths
from minigts.errors import MinigtsError
from minigts.language import documents
from minigts.machine.proc import boot_id, stat_fields, text_of

T = TypeVar("T")

MARK = "MINIGTS_RUNDIR"
"""Environment variable that every process of a lab carries; its value is the lab's run directory."""
LAUNCH = paths.LAUNCH
"""The file in the run directory that says what the supervisor is to start."""
_LAUNCH_LIMIT_BYTES = 16 << 20
_OF_A_LAUNCH = documents.Bounds(elements=1_000_000, bytes=_LAUNCH_LIMIT_BYTES)

UNUSED_LIMIT = 10
"""RLIMIT_LOCKS, which Linux has ignored since 2.4 (setrlimit(2)); /proc/PID/limits calls it `Max file locks`."""
_LIMIT_NAMED = re.compile(r"^Max file locks +(\d+) +(\d+) ", re.MULTILINE)
_RECORD = paths.SUPERVISOR
_RECORD_LIMIT_BYTES = 4096
_HIGHEST_PID = 1 << 22
"""PID_MAX_LIMIT of a 64-bit Linux, proc(5)."""


@dataclass(frozen=True)
class Process:
    """A process, identified for good by its id and its start time, in clock ticks since boot."""

    pid: int
    started: int

    @property
    def runs(self) -> bool:
        return started_ticks(self.pid) == self.started


def record(rundir: Path) -> None:
    """Record that this process is the lab's supervisor."""
    pid = os.getpid()
    content = {"pid": pid, "started": started_ticks(pid), "boot": boot_id()}
    paths.write_whole(rundir / _RECORD, json.dumps(content))


def brand(rundir: Path) -> None:
    """Mark this process, and all that it starts from now on, as the lab's by a limit that has no other use.

    Where the limit is already lower, only the mark in the environment remains.
    """
    number = _number(rundir)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(UNUSED_LIMIT, (number, number))


def _number(rundir: Path) -> int:
    """The lab's number for the limit: 62 bits of a digest of its run directory's name."""
    return int.from_bytes(hashlib.sha256(str(rundir).encode()).digest()[:8], "big") >> 2


def has_started(rundir: Path) -> bool:
    """Whether a supervisor has started; it may have ended since."""
    return (rundir / _RECORD).exists()


def read_launch(path: Path, build: Callable[[Any], T]) -> T:
    """The result of `build` for the JSON in launch.json. Raises MinigtsError when the file does not fit."""
    try:
        return build(documents.document(paths.read_whole(path, _LAUNCH_LIMIT_BYTES), _OF_A_LAUNCH))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise MinigtsError(f"{path.name} does not say what to start ({type(error).__name__}): {error}") from error


def supervisor(rundir: Path) -> int | None:
    """The process id of the lab's supervisor; None if it does not run, or its record is missing or damaged."""
    found = _supervisor(rundir)
    return None if found is None else found.pid


def marked_pids(rundir: Path) -> list[int]:
    """Process ids of the lab's supervisor and of all that it started, also of those that are orphans now."""
    return [found.pid for found in _of_lab(rundir)]


def end(rundir: Path, patience_s: float = 5.0, killed_s: float = 30.0) -> list[str]:
    """End the lab's supervisor, in `patience_s` by itself or else killed, then its remaining processes. A process that
    is killed ends when it next has a processor: it has `killed_s`. Returns one sentence for each that could not be
    ended."""
    remove(rundir / LAUNCH)
    first = _supervisor(rundir)
    if first is not None:
        send_marked(first, signal.SIGTERM, MARK, str(rundir))
        if not _gone([first], patience_s):
            send_marked(first, signal.SIGKILL, MARK, str(rundir))
    deadline = time.monotonic() + killed_s
    while left := _of_lab(rundir):
        _kill(left, rundir)
        if not _gone(left, min(1.0, killed_s)) and time.monotonic() > deadline:
            return [f"process {process.pid} does not end" for process in left if process.runs]
    remove(rundir / _RECORD)
    return []


def _of_lab(rundir: Path) -> list[Process]:
    """Every other running process that has the lab's mark, in its environment or as a limit."""
    return _every(lambda pid: _is_of_lab(pid, rundir))


def _is_of_lab(pid: int, rundir: Path) -> bool:
    return _carries(pid, MARK, str(rundir)) or _limit(pid) == _number(rundir)


def _limit(pid: int) -> int | None:
    found = _LIMIT_NAMED.search(text_of(Path(f"/proc/{pid}/limits")))
    return int(found[2]) if found else None


def _kill(processes: Sequence[Process], rundir: Path) -> None:
    """Kill processes, and each process group in which all are the lab's, so that none escapes by forking."""
    groups: dict[int | None, list[int]] = {}
    for each in _every(lambda _: True):
        groups.setdefault(_group(each.pid), []).append(each.pid)
    for group in {_group(each.pid) for each in processes} - {None, os.getpgrp()}:
        if group is not None and all(_is_of_lab(pid, rundir) for pid in groups.get(group, ())):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
    for each in processes:
        send_if(each.pid, signal.SIGKILL, partial(_is_still, each, rundir))


def _is_still(process: Process, rundir: Path) -> bool:
    return process.runs and _is_of_lab(process.pid, rundir)


def _group(pid: int) -> int | None:
    fields = stat_fields(pid)
    return int(fields[2]) if fields else None


def carrying(variable: str, value: str) -> list[Process]:
    """Every other running process that has this variable with this value in its environment."""
    return _every(lambda pid: _carries(pid, variable, value))


def _every(holds: Callable[[int], bool]) -> list[Process]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        pid = int(directory.name)
        started = started_ticks(pid)
        if pid != os.getpid() and started is not None and holds(pid):
            found.append(Process(pid, started))
    return found


def send_marked(process: Process, number: signal.Signals, variable: str, value: str) -> bool:
    """Send a signal to `process` if it still runs and has this variable with this value in its environment."""
    return send_if(process.pid, number, lambda: process.runs and _carries(process.pid, variable, value))


def send_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Send the process `pid` a signal if `is_meant` returns true while a pidfd keeps its id from being used again.

    Returns False when nothing was sent: the process has ended, is another user's or not the one that is meant, or
    `pid` is this process's or no valid id.
    """
    if not 1 < pid <= _HIGHEST_PID or pid == os.getpid():
        return False
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_meant():
            return False
        signal.pidfd_send_signal(held, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(held)
    return True


def started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it has ended (a zombie has)."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def _supervisor(rundir: Path) -> Process | None:
    found = _recorded_process(rundir / _RECORD)
    return found if found is not None and found.runs and _carries(found.pid, MARK, str(rundir)) else None


def _recorded_process(path: Path) -> Process | None:
    """The process in a record such as `{"pid": 4711, "started": 8154711, "boot": "0f…"}`; None for a record that is
    damaged or of another boot."""
    try:
        content = documents.document(paths.read_whole(path, _RECORD_LIMIT_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("boot") != boot_id():
        return None
    pid, started = content.get("pid"), content.get("started")
    # Compared by type, since True is an int, too.
    if type(pid) is not int or type(started) is not int or not 1 < pid <= _HIGHEST_PID or started <= 0:
        return None
    return Process(pid, started)


def _carries(pid: int, variable: str, value: str) -> bool:
    try:
        return f"{variable}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _gone(processes: list[Process], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while any(process.runs for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def remove(path: Path) -> None:
    """Remove a file of the run directory, or a directory in its place."""
    with contextlib.suppress(NotADirectoryError):
        paths.remove_tree(path)

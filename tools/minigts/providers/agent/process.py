"""Which processes are a lab's: its supervisor, by a record; all of them, by a mark in their environment.

A process id alone proves nothing, since ids are used again: a record holds the start time and the boot too.

No supervisor escapes `end`, whenever it was started: it records itself before it reads what to start, and `end`
takes that away before it looks for the record.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

MARK = "MINIGTS_RUNDIR"
"""Environment variable that every process of a lab carries; its value is the lab's run directory."""
LAUNCH = "launch.json"
"""What the supervisor is to start, in the run directory."""

_RECORD = "supervisor.json"


def record(rundir: Path) -> None:
    """Write down that this process is the lab's supervisor."""
    pid = os.getpid()
    content = {"pid": pid, "started": started_ticks(pid), "boot": _boot_id()}
    temporary = rundir / f"{_RECORD}.new"
    temporary.write_text(json.dumps(content))
    temporary.rename(rundir / _RECORD)


def recorded(rundir: Path) -> bool:
    """Whether a supervisor has begun, and may have ended since."""
    return (rundir / _RECORD).exists()


def supervisor(rundir: Path) -> int | None:
    """The process id of the lab's supervisor; None if it does not run."""
    try:
        content = json.loads((rundir / _RECORD).read_text())
    except (OSError, ValueError):
        return None
    pid = int(content["pid"])
    same = content["boot"] == _boot_id() and content["started"] == started_ticks(pid)
    return pid if same else None


def marked(rundir: Path) -> list[int]:
    """Process ids of the lab's supervisor and of what it started, whoever is their parent now."""
    mark = f"{MARK}={rundir}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (directory / "environ").read_bytes().split(b"\0"):
                found.append(int(directory.name))
    return [pid for pid in found if pid != os.getpid()]


def end(rundir: Path, patience_s: float = 5.0) -> list[str]:
    """End the lab's supervisor, then whatever is left. Returns what could not be ended, a sentence each."""
    (rundir / LAUNCH).unlink(missing_ok=True)
    pid = supervisor(rundir)
    if pid is not None:
        send(pid, signal.SIGTERM)
        if not _gone([pid], patience_s):
            send(pid, signal.SIGKILL)
    left = marked(rundir)
    for process in left:
        send(process, signal.SIGKILL)
    pids = left if pid is None else [pid, *left]
    if _gone(pids, patience_s):
        (rundir / _RECORD).unlink(missing_ok=True)
        return []
    return [f"process {pid} does not end" for pid in pids if started_ticks(pid) is not None]


def send(pid: int, number: signal.Signals) -> None:
    """Send a process a signal, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it has ended (a zombie has)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _gone(pids: list[int], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while any(started_ticks(pid) is not None for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

"""Records why a host's kernel was ended by its supervisor or its clock: it broke their protocol, and cannot say why.

The record is ended/NAME.log in the run directory, where no guest's kernel can write. Standard library only.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from minigts import paths

DIRECTORY = "ended"
LOG = "ended.log"
"""The record's name among a host's logs."""
_LIMIT_BYTES = 4096


def log(rundir: Path, host: str) -> Path:
    """The record's file, which exists only for a host that was ended."""
    return rundir / DIRECTORY / f"{host}.log"


def note(rundir: Path, host: str, why: str) -> None:
    """Record that the host was ended; `why` is a clause such as `by the clock: it asked for a time that has passed`."""
    log(rundir, host).parent.mkdir(exist_ok=True)
    paths.write_whole(log(rundir, host), f"{host} was ended {why}\n")


def forget(rundir: Path, host: str) -> None:
    """Remove the record of a host that is started again."""
    log(rundir, host).unlink(missing_ok=True)


def forget_all(rundir: Path) -> None:
    """Remove all records of a lab that is started again."""
    shutil.rmtree(rundir / DIRECTORY, ignore_errors=True)


def end_clause(rundir: Path, host: str) -> str:
    """A clause with the reason and the remedy, to append to an error about the host; empty if it was not ended."""
    try:
        why = paths.read_whole(log(rundir, host), _LIMIT_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
    return f": {why}; minigts restart {host} starts it again"

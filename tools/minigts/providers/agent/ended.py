"""Why a host was ended by what serves it: its kernel did what none does, and says nothing any more.

It stands in ended/NAME.log of the run directory, where no guest's kernel may write. Standard library only.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from minigts import paths

DIRECTORY = "ended"
LOG = "ended.log"
"""What it is called among a host's logs."""
_LIMIT_BYTES = 4096


def log(rundir: Path, host: str) -> Path:
    """The file, which is there only for a host that was ended."""
    return rundir / DIRECTORY / f"{host}.log"


def note(rundir: Path, host: str, why: str) -> None:
    """`why` is a clause, such as `by the clock: it asked for a time that has passed`."""
    log(rundir, host).parent.mkdir(exist_ok=True)
    paths.write_whole(log(rundir, host), f"{host} was ended {why}\n")


def forget(rundir: Path, host: str) -> None:
    """It is started anew."""
    log(rundir, host).unlink(missing_ok=True)


def forget_all(rundir: Path) -> None:
    """The lab is started anew."""
    shutil.rmtree(rundir / DIRECTORY, ignore_errors=True)


def in_words(rundir: Path, host: str) -> str:
    """A clause to put behind what is said of the host, with what helps; empty if it was not ended."""
    try:
        why = paths.read_whole(log(rundir, host), _LIMIT_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
    return f": {why}; minigts restart {host} makes it whole again"

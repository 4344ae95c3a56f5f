"""What an exploration does on this machine, outside of hosts, and whether its user allows that."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from minigts.errors import MinigtsError
from minigts.experiments import trust
from minigts.explore import folder, host_files
from minigts.explore.work import Exploration
from minigts.results.gate import Trusted


def open_exploration(place: Path, *, trusted: bool) -> Trusted[Exploration]:
    """The exploration in a folder, to be taken. One that is `trusted` is signed, so that it is asked once. Raises
    InputError for a folder that is no exploration's, and for a stranger's that is not `trusted`, with all that it would
    do."""
    found = folder.examine(place)
    allowed = found.allow(asks(found.content), trusted=trusted)
    if not found.is_own:
        with suppress(MinigtsError):  # a folder that cannot be written to is asked for each time
            folder.adopt(place, found.content)
    return allowed


def asks(exploration: Exploration) -> list[str]:
    """What taking its seeds does on this machine, in words."""
    files = ", ".join(sorted(exploration.test.files)) or "no files"
    left = set(host_files.elsewhere(exploration.plan, exploration.host_files))
    wanted = [line for line in trust.lab_uses(exploration.plan, exploration.provider) if not _is_kept(line, left)]
    return [
        f"run the test `{exploration.test.in_words}` as you, with {files} of it",
        *(f"use {line}" for line in wanted),
    ]


def _is_kept(line: str, left: set[str]) -> bool:
    """Whether a line of `trust` is about a file that the exploration itself has."""
    return line.startswith("the file or directory ") and not any(name in line for name in left)

"""Paths of files that a file of the user's copies to a host: from beside it, to a place on the host's disk. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from minigts.language.problems import quote

LONGEST_PATH = 1000
EMPTIED = ("/proc", "/sys", "/dev", "/run", "/tmp")
"""Directories of a host that are not on its disk, and are empty after a start."""


def checked_source(value: object) -> str:
    """A path below the directory of the file that names it. Raises ValueError."""
    path = PurePosixPath(value) if isinstance(value, str) and 0 < len(value) <= LONGEST_PATH else None
    if path is None or path.is_absolute() or ".." in path.parts:
        raise ValueError(
            f"{quote(value)} is no path below the topology file's directory: write it from there, as in site/index.html"
        )
    return str(path)


def checked_target(value: object) -> str:
    """A path on a host in normal form, in which a slash at its end is kept. Raises ValueError."""
    wanted = "write where it is to be, as in /srv/site, or the directory that it goes into, as in /srv/"
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_PATH or not value.startswith("/"):
        raise ValueError(f"{quote(value)} is no path on a host from its root: {wanted}")
    path = PurePosixPath(f"/{value.lstrip('/')}")
    if ".." in path.parts or "\n" in value:
        raise ValueError(f"{quote(value)} is no plain path: {wanted}")
    emptied = next((each for each in EMPTIED if path.is_relative_to(each)), None)
    if emptied is not None:
        raise ValueError(f"{quote(value)} would be gone when the host starts again: {emptied} is not on its disk")
    return f"{str(path).rstrip('/')}/" if value.endswith("/") else str(path)

"""Another user of this machine, for tests that root runs: an id that nobody has, and files that they can read."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

Ignore = Callable[[str, list[str]], Iterable[str]]


def free_id() -> int:
    """A user's and group's id that nobody has."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(number for number in range(61000, 65000) if number not in taken)


def python() -> Path:
    """An interpreter that they can run, of the same version as this one, so that it takes the same packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(version, path="/usr/bin:/usr/local/bin")
    for candidate in (Path(sys.executable), *([Path(found)] if found else [])):
        real = candidate.resolve()
        if all(place.stat().st_mode & 0o001 for place in (real, *real.parents)):
            return real
    pytest.skip(f"{sys.executable} lies where a plain user cannot go, and there is no {version} in /usr/bin")


def link(source: Path, target: Path, ignore: Ignore | None = None) -> None:
    """The same files under another name, or copies with their holes and times where links are not possible."""

    def link_file(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            argv = ["cp", "--reflink=auto", "--sparse=always", "--preserve=timestamps,mode", one, other]
            subprocess.run(argv, check=True)

    shutil.copytree(source, target, symlinks=True, copy_function=link_file, ignore=ignore)


def give(place: Path, user: int) -> None:
    """Make them the owner of a directory with all that is in it."""
    for path in (place, *place.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)

"""What a user has compiled and put into a folder by `make install DESTDIR=…`, which hosts of a suite have in place of
what Debian has."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from minigts.errors import InputError, Problem
from minigts.providers import archive
from minigts.suites.suite import read_file

TOPS = frozenset({"bin", "etc", "lib", "lib64", "opt", "sbin", "srv", "usr", "var"})
"""The folders of a host's root that may be there."""
MOST_FILES = 100_000
COMPILED = b"\x7fELF"
"""How a compiled program begins."""


def sha256(directory: Path) -> str:
    """The digest of all that is there: paths, modes, contents, and where links lead. Raises InputError."""
    found = hashlib.sha256()
    for path in _files(directory):
        mode = path.lstat().st_mode
        content = bytes(path.readlink()) if path.is_symlink() else read_file(path)
        for word in (bytes(path.relative_to(directory)), f"{mode:o}".encode(), content):
            found.update(b"%d " % len(word) + word)
    return found.hexdigest()


def pack(directory: Path, file: IO[bytes]) -> None:
    """Pack all that is there for a host's root. Raises InputError."""
    archive.pack_below(directory, _files(directory), file)


def programs(directory: Path) -> Sequence[Path]:
    """The compiled programs and libraries that are there, by their paths on a host. Raises InputError."""
    runnable = (path for path in _files(directory) if not path.is_symlink() and os.access(path, os.X_OK))
    return [path.relative_to(directory) for path in runnable if _begins(path) == COMPILED]


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(COMPILED))


def _files(directory: Path) -> Sequence[Path]:
    """The files and links, in the order of their paths."""
    if not directory.is_dir():
        raise InputError([Problem(str(directory), 0, "no such directory; `make install DESTDIR=DIR` makes one")])
    if strange := sorted({path.name for path in directory.iterdir()} - TOPS):
        made = f"`make install DESTDIR=DIR` makes only such as {', '.join(sorted(TOPS))}"
        raise InputError([Problem(str(directory), 0, f"has {strange[0]}, but {made}")])
    found = sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
    if not found:
        raise InputError([Problem(str(directory), 0, "has no files: nothing was installed there")])
    if len(found) > MOST_FILES:
        raise InputError([Problem(str(directory), 0, f"has {len(found)} files; {MOST_FILES} are the most")])
    for path in found:
        if not (path.is_symlink() or path.is_file()):
            raise InputError([Problem(str(path), 0, "is neither a file nor a link")])
    return found

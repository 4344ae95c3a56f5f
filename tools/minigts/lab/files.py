"""Copies of files between this machine and a lab's hosts. A target is complete or does not exist.

A copy is written under a temporary name beside the target, and renamed when it is complete. An interrupted copy removes
it. What a host says of a path is held against what it then sends, and nothing that it sends is followed: a copy of a
file is a file, and a copy from host to host is never unpacked here.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from minigts import paths
from minigts.errors import HostFailed, InputError, MinigtsError, reading_from
from minigts.foreign import Foreign, identifier
from minigts.lab import provisioning
from minigts.lab.lab import Lab
from minigts.providers import archive
from minigts.providers.archive import Copy

HOME = PurePosixPath("/root")
"""The folder of relative paths on a host, as for its commands."""
STEP_TIMEOUT_S = 600.0
LOOK = """
if [ -d "$1" ]; then echo directory; elif [ -e "$1" ]; then echo file; else echo nothing; fi
if [ -d "$2" ]; then echo directory; else echo nothing; fi
"""
"""A script that prints what a path on a host is, and what its parent is."""
WHAT = re.compile("directory|file|nothing")
FINISH = """
cd "$1"
if [ -d "$2" ] && [ -d "$3" ]; then cp -a -l -f -- "$2/." "$3"; rm -rf -- "$2"; else mv -f -T -- "$2" "$3"; fi
"""
"""A script that renames a complete copy to the target. A directory's files are moved into an existing directory."""
DISCARD = 'cd "$1" && rm -rf -- "$2"'


@dataclass(frozen=True)
class There:
    """A path on a host."""

    host: str
    path: PurePosixPath
    into: bool = False
    """Whether the path ends with a slash, so that it has to be a directory."""

    @classmethod
    def of(cls, host: str, path: str) -> There:
        return cls(host, HOME / path, path.endswith("/"))

    def __str__(self) -> str:
        return f"{self.host}:{self.path}"


def put(lab: Lab, source: Path, target: There, *, recursive: bool) -> There:
    """Copy a file or directory of this machine to a host; return where it is there. A copy into a directory keeps its
    name.

    Raises InputError before anything is changed: when source or target does not exist, or is of the wrong kind.
    """
    if not source.exists():
        raise InputError(f"no file or directory {source} on this machine")
    _require_recursive(str(source), source.is_dir(), recursive)
    named = _place_on_host(lab, target, source.resolve().name, source.is_dir())
    with _arriving_on(lab, named) as arriving:
        lab.provider.put(named.host, source.resolve(), arriving)
    return named


@dataclass(frozen=True)
class Copied:
    """A copy on this machine."""

    place: Path
    copy: Copy


def get(lab: Lab, source: There, target: Path, *, recursive: bool) -> Copied:
    """Copy a file or directory of a host to this machine. Rules and errors are `put`'s. Raises HostFailed for a host
    that sends something else than it said that it has."""
    what = _what(lab, source, recursive)
    named = target / source.path.name if target.is_dir() else target
    if not named.parent.is_dir():
        raise InputError(f"no directory {named.parent} on this machine")
    if named.exists() and named.is_dir() != (what == "directory"):
        raise InputError(
            f"{named} on this machine is {'a' if named.is_dir() else 'no'} directory; {source} is a {what}"
        )
    if not os.access(named.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to the directory {named.parent} on this machine")
    arriving = named.with_name(_arriving(named.name))
    try:
        copy = lab.provider.get(source.host, provisioning.place(lab, source.host, source.path), arriving)
        _require_as_told(source, what, copy)
        _finish(arriving, named)
    finally:
        _discard(arriving)
    return Copied(named, copy)


def copy_between_hosts(lab: Lab, source: There, target: There, *, recursive: bool) -> Copy:
    """Copy a file or directory of one host to another. The one host's archive is checked, and written anew for the
    other, which unpacks it; nothing of it gets a name on this machine. Rules and errors are `get`'s."""
    what = _what(lab, source, recursive)
    named = _place_on_host(lab, target, source.path.name or "root", what == "directory")
    with _arriving_on(lab, named) as arriving:

        def write(packed: IO[bytes], into: IO[bytes]) -> Copy:
            copy = archive.hand_on(source.host, packed, arriving, into, lab.rundir)
            _require_as_told(source, what, copy)
            return copy

        def hand_on(packed: IO[bytes]) -> Copy:
            return lab.provider.unpack_on(named.host, arriving.parent, partial(write, packed))

        return lab.provider.archive_of(source.host, provisioning.place(lab, source.host, source.path), hand_on)


@contextmanager
def _arriving_on(lab: Lab, named: There) -> Iterator[PurePosixPath]:
    """A context in which a copy is written to this path on a host. At its end the copy gets its name; after an error it
    is removed."""
    above = str(provisioning.place(lab, named.host, named.path.parent))
    arriving = _arriving(named.path.name)
    try:
        yield PurePosixPath(above) / arriving
        _on(lab, named.host, FINISH, above, arriving, named.path.name)
    except BaseException:
        with contextlib.suppress(MinigtsError):
            _on(lab, named.host, DISCARD, above, arriving)
        raise


def _what(lab: Lab, source: There, recursive: bool) -> str:
    """What a host says that this is, a file or a directory. Raises InputError when it is neither, and for a directory
    that is not to be copied recursively."""
    what, _ = _look(lab, source.host, source.path)
    if what == "nothing":
        raise InputError(f"no file or directory {source.path} on host {source.host}")
    _require_recursive(str(source), what == "directory", recursive)
    return what


def _require_as_told(source: There, what: str, copy: Copy) -> None:
    if copy.is_directory != (what == "directory"):
        other = "directory" if copy.is_directory else "file"
        raise HostFailed(f"host {source.host} said that {source.path} is a {what}, and sends a {other}")


def _require_recursive(name: str, directory: bool, recursive: bool) -> None:
    if directory and not recursive:
        raise InputError(f"{name} is a directory: say -r to copy it with everything in it")


def _place_on_host(lab: Lab, target: There, name: str, directory: bool) -> There:
    what, above = _look(lab, target.host, target.path)
    if what == "directory":
        placed = There(target.host, target.path / name)
        what, above = _look(lab, placed.host, placed.path)
    elif target.into:
        raise InputError(f"no directory {target.path} on host {target.host}")
    else:
        placed = target
    if above == "nothing":
        raise InputError(f"no directory {placed.path.parent} on host {placed.host}")
    if what != "nothing" and (what == "directory") != directory:
        raise InputError(f"{placed} is a {what}, and {name} is a {'directory' if directory else 'file'}")
    return placed


def _look(lab: Lab, host: str, path: PurePosixPath) -> tuple[str, str]:
    path, parent = (provisioning.place(lab, host, each) for each in (path, path.parent))
    said = _on(lab, host, LOOK, str(path), str(parent))
    with reading_from(host, f"what it says of {path}"):
        what, above = (identifier(word, WHAT) for word in said.split())
    return what, above


def _on(lab: Lab, host: str, script: str, *words: str) -> Foreign:
    return lab.provider.run(host, ["sh", "-euc", script, "sh", *words], timeout_s=STEP_TIMEOUT_S).stdout


def _arriving(name: str) -> str:
    return f".{name[:200]}.{secrets.token_hex(4)}"


def _finish(arriving: Path, target: Path) -> None:
    """Give a copy its name. A directory's files are moved into an existing directory; whatever is a link on either side
    is replaced, or replaces, and is not followed."""
    if not _is_directory(arriving) or not _is_directory(target):
        arriving.replace(target)
        return
    mode = arriving.lstat().st_mode
    for each in arriving.iterdir():
        _finish(each, target / each.name)
    target.chmod(stat.S_IMODE(mode))


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _discard(path: Path) -> None:
    """Remove an unfinished copy, whatever modes the host chose for its directories."""
    with contextlib.suppress(OSError):
        paths.remove_tree(path)

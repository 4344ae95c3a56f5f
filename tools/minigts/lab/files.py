"""Copies of files between this machine and a lab's hosts. A target is complete or does not exist.

A copy is written under a temporary name beside the target, and renamed when it is complete. An interrupted copy removes
it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.errors import InputError, MinigtsError, reading_from
from minigts.foreign import Foreign, identifier
from minigts.lab import provisioning
from minigts.lab.lab import Lab

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
    above = str(provisioning.place(lab, named.host, named.path.parent))
    arriving = _arriving(named.path.name)
    try:
        lab.provider.put(named.host, source.resolve(), PurePosixPath(above) / arriving)
        _on(lab, named.host, FINISH, above, arriving, named.path.name)
    except BaseException:
        with contextlib.suppress(MinigtsError):
            _on(lab, named.host, DISCARD, above, arriving)
        raise
    return named


def get(lab: Lab, source: There, target: Path, *, recursive: bool) -> Path:
    """Copy a file or directory of a host to this machine; return where it is here. Rules and errors are `put`'s."""
    what, _ = _look(lab, source.host, source.path)
    if what == "nothing":
        raise InputError(f"no file or directory {source.path} on host {source.host}")
    _require_recursive(str(source), what == "directory", recursive)
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
        lab.provider.get(source.host, provisioning.place(lab, source.host, source.path), arriving)
        _finish(arriving, named)
    finally:
        _discard(arriving)
    return named


def between(lab: Lab, source: There, target: There, *, recursive: bool) -> int:
    """Copy a file or directory of one host to another through the lab's run directory; return its size in bytes. Rules
    and errors are `put`'s."""
    with tempfile.TemporaryDirectory(dir=lab.rundir, prefix="copy.") as place:
        arrived = get(lab, source, Path(place) / (source.path.name or "root"), recursive=recursive)
        put(lab, arrived, target, recursive=recursive)
        return paths.size_bytes(arrived)


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
    if not (arriving.is_dir() and target.is_dir()) or arriving.is_symlink() or target.is_symlink():
        arriving.replace(target)
        return
    for each in arriving.iterdir():
        _finish(each, target / each.name)
    target.chmod(arriving.stat().st_mode)


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

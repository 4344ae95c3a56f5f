"""The content of a built directory: its files with their SHA-256 sums, and one sum of all of them.

A recipe's key identifies the input of a build, and these sums its output: two builds of one recipe may differ, since
Debian's packages change from day to day.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.language import documents

NOT_CONTENT = re.compile(r"log|unlocked|(.*/)?\.[^/]+\.sums")
"""Files that are not content: a build's log, why it was made without a lock's packages, and the sums that are kept
beside a directory."""
_SUMS_BYTES = 10_000_000


@dataclass(frozen=True)
class Entry:
    """A regular file, by its path from the directory."""

    name: str
    executable: bool
    size: int
    sha256: str


def entries(directory: Path) -> tuple[Entry, ...]:
    """Every regular file of the directory, sorted by path. An unchanged directory is not read again.

    The sums are kept in a file beside the directory where possible, since reading 2.5 GB takes ten seconds.
    """
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        known: dict[str, Any] = documents.document(paths.read_whole(_kept(directory), _SUMS_BYTES))
        if known["seen"] == _seen(directory):
            return tuple(Entry(**each) for each in known["entries"])
    found = tuple(_entry(name, path) for name, path in _files(directory))
    keep(directory, found)
    return found


def keep(directory: Path, found: Iterable[Entry]) -> None:
    """Keep these as the entries of the directory in its present state."""
    with contextlib.suppress(OSError):
        known = {"seen": _seen(directory), "entries": [asdict(each) for each in found]}
        paths.write_whole(_kept(directory), json.dumps(known))


def _kept(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.sums")


def _seen(directory: Path) -> list[list[str | int]]:
    return [[name, path.stat().st_size, path.stat().st_mtime_ns] for name, path in _files(directory)]


def total(found: Iterable[Entry]) -> str:
    """The SHA-256 sum of the lines `SUM MODE NAME` of all files in the order of names; MODE is x or -."""
    digest = hashlib.sha256()
    for each in sorted(found, key=lambda entry: entry.name):
        digest.update(f"{each.sha256} {'x' if each.executable else '-'} {each.name}\n".encode())
    return digest.hexdigest()


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and not path.is_symlink() and NOT_CONTENT.fullmatch(name) is None:
            yield name, path


def _entry(name: str, path: Path) -> Entry:
    with path.open("rb") as file:
        sum_of = hashlib.file_digest(file, "sha256").hexdigest()
    status = path.stat()
    return Entry(name, bool(status.st_mode & 0o100), status.st_size, sum_of)

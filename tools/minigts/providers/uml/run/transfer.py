"""Copies files to a host and from it as tar archives, through a directory that the guest can mount."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from minigts import paths
from minigts.machine import beneath
from minigts.providers import archive
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.run import confinement

T = TypeVar("T")
TIMEOUT_S = 3600.0
PACKED = "packed.tar"
UNPACK_SHARED = """
from=$(mktemp -d)
mount -t hostfs -o "hostfs=$1" none "$from"
mkdir -p "$3" && tar -x -m --no-same-owner -C "$3" -f "$from/$2" || failed=yes
umount "$from"
rmdir "$from"
[ -z "${failed:-}" ]
"""
"""A script that unpacks from a directory of this machine, which a guest reads many times faster than its control line.
Unpacked files get the guest's present time (-m): a guest in virtual time must not see this machine's time."""
PACK_SHARED = """
to=$(mktemp -d)
mount -t hostfs -o "hostfs=$2" none "$to"
sh -euc "$4" sh "$1" 1<>"$to/$3" || failed=yes
umount "$to"
rmdir "$to"
[ -z "${failed:-}" ]
"""
"""A script that packs into an existing file, since a kernel may not truncate one by name or set its time
(confinement.py)."""
UNPACK = 'mkdir -p "$1" && tar -x -m --no-same-owner -C "$1"'


def unpack_on(
    provider: AgentProvider,
    host: str,
    directory: Path | None,
    above: PurePosixPath,
    write: Callable[[IO[bytes]], T],
) -> T:
    """`Provider.unpack_on` for a host in a User-Mode Linux kernel that can mount `directory` by hostfs; None if it
    cannot.

    A kernel that cannot be confined has no hostfs.
    """
    if directory is None or confinement.version() == 0:
        packed = io.BytesIO()
        written = write(packed)
        argv = ["sh", "-euc", UNPACK, "sh", str(above)]
        provider.run(host, argv, timeout_s=TIMEOUT_S, stdin=packed.getvalue())
        return written
    with _place(directory, "put") as place:
        with (place / PACKED).open("wb") as file:
            written = write(file)
        argv = ["sh", "-euc", UNPACK_SHARED, "sh", place.name, PACKED, str(above)]
        provider.run(host, argv, timeout_s=TIMEOUT_S)
    return written


def put(provider: AgentProvider, host: str, directory: Path | None, source: Path, target: PurePosixPath) -> None:
    """`Provider.put` for such a host."""
    unpack_on(provider, host, directory, target.parent, partial(archive.pack, source, target))


@contextmanager
def _place(directory: Path, purpose: str) -> Iterator[Path]:
    """A new directory in this one, named by the first number that is free. A guest's programs have its name in their
    arguments, and a guest whose programs start with other arguments is another one: it is the same in each lab."""
    for number in itertools.count(1):
        place = directory / f"{purpose}.{number:08d}"
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        break
    try:
        yield place
    finally:
        paths.remove_tree(place)


def can_return(directory: Path) -> bool:
    """Whether a guest can write into this directory by hostfs."""
    return directory.is_dir() and confinement.version() > 0


def archive_of(
    provider: AgentProvider, host: str, directory: Path, source: PurePosixPath, read: Callable[[IO[bytes]], T]
) -> T:
    """`Provider.archive_of` for a host in a User-Mode Linux kernel that may write into `directory`, below its
    hostfs."""
    with _place(directory, "get") as place:
        (place / PACKED).touch()
        within = f"{directory.name}/{place.name}"
        argv = ["sh", "-euc", PACK_SHARED, "sh", str(source), within, PACKED, archive.PACK]

        def look() -> None:
            if (place / PACKED).lstat().st_size > archive.MOST_BYTES:
                raise archive.TooMuch(host, archive.MOST_BYTES)

        provider.stream(host, argv, lambda _: None, TIMEOUT_S, look)
        look()
        with beneath.plain_file(place, PACKED) as packed:
            return read(packed)

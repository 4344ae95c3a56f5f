"""Files and directories as a stream of tar: how they come to a host, and how they come from one.

What comes from a host is taken for an attack until it has been looked at: nothing is written outside the target, no
device is made, no file gets another owner, nor the right to run as its owner. Nothing grows by being unpacked, and what
the archive says of its members is read up to a bound.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from minigts.errors import HostFailed

PERMISSIONS = 0o777
BLOCK_BYTES = 1 << 20
MOST_BYTES = 4 << 30
"""Of what is brought from a host at once. Who wants more brings it in parts."""
MOST_MEMBERS = 500_000
MOST_SAID_BYTES = 1 << 17
"""What an archive may say of one member: its name, its link's target, each of up to 4096 bytes (PATH_MAX), and more."""
UNREADABLE = (tarfile.TarError, ValueError, OverflowError, LookupError, EOFError)
"""What tarfile raises for what is no archive, or is made to break who reads it."""
PACK = """
real=$(readlink -e -- "$1") || { echo "no file or directory $1" >&2; exit 1; }
copy=
if [ -d "$real" ]; then
  from=$real what=.
elif [ ! -f "$real" ]; then
  echo "neither a file nor a directory: $1" >&2; exit 1
elif [ -s "$real" ]; then
  from=$(dirname -- "$real") what=./$(basename -- "$real")
else
  copy=$(mktemp -d)
  cp --preserve=mode -- "$real" "$copy/file"
  from=$copy what=./file
fi
tar -c --hard-dereference -C "$from" -- "$what" || [ $? = 1 ] || failed=yes
[ -z "$copy" ] || rm -rf "$copy"
[ -z "${failed:-}" ]
"""
"""For `sh -euc`, with a path on a host as $1: it packed, on stdout. A file of /proc says that it is empty, so it is
read first. tar's code 1 is a file that grew meanwhile, as logs do.
"""


def packing(source: PurePosixPath) -> list[str]:
    """The command that packs a file, or a directory with all that is in it, on its stdout."""
    return ["sh", "-euc", PACK, "sh", str(source)]


def pack(source: Path, target: PurePosixPath, file: IO[bytes]) -> None:
    """Under the target's name, as root's."""
    with tarfile.TarFile(fileobj=file, mode="w", copybufsize=BLOCK_BYTES) as archive:
        archive.add(source, arcname=target.name, filter=_owned_by_root)


def unpack(host: str, packed: IO[bytes], target: Path) -> None:
    """What `packing` packed on `host`, as `target`, which must not be there: a file, or a directory.

    Modes and times are kept, but for setuid, setgid and the sticky bit. Devices, pipes and sockets are left out. Where
    there are nothing but zeros a file has holes. Raises HostFailed for what is no such archive.
    """
    reading = _Bounded(packed)
    try:
        with tarfile.TarFile(fileobj=reading) as archive:
            _unpack(host, archive, reading, target)
    except UNREADABLE as error:
        raise HostFailed(f"host {host} sent no whole archive: {error}") from error


class TooMuch(HostFailed):
    """A host sends more than is taken from it."""

    def __init__(self, host: str, most_bytes: int) -> None:
        super().__init__(f"host {host} sends more than {most_bytes / 1e9:.1f} GB at once: bring it in parts")


class Counted:
    """Takes what a host sends as an archive into a file, up to so many bytes."""

    def __init__(self, host: str, file: IO[bytes], most_bytes: int = MOST_BYTES) -> None:
        self._host, self._file, self._most_bytes, self._left = host, file, most_bytes, most_bytes

    def write(self, piece: bytes) -> None:
        """Raises TooMuch."""
        self._left -= len(piece)
        if self._left < 0:
            raise TooMuch(self._host, self._most_bytes)
        self._file.write(piece)


class _Bounded(io.RawIOBase):
    """A file of which no more than MOST_SAID_BYTES is read between two calls of `next_member`, but for what is content:
    that is read in blocks.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, MOST_SAID_BYTES
        self.is_content = False

    def next_member(self) -> None:
        self._left = MOST_SAID_BYTES

    def read(self, size: int = -1) -> bytes:
        if self.is_content:
            return self._file.read(size)
        if not 0 <= size <= self._left:
            raise tarfile.ReadError("it says too much of one of its members")
        self._left -= size
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _members(archive: tarfile.TarFile, reading: _Bounded) -> Iterator[tarfile.TarInfo]:
    """One after the other, and none is remembered."""
    for _ in range(MOST_MEMBERS):
        reading.next_member()
        member = archive.next()
        if member is None:
            return
        archive.members.clear()  # type: ignore[attr-defined]  # it would keep all of them
        if member.size < 0:
            raise tarfile.TarError(f"{member.name!a} has less than nothing in it")
        if member.issparse():
            raise tarfile.TarError(f"{member.name!a} has holes, which no tar of a host sends")
        yield member
    raise tarfile.TarError(f"it has more than {MOST_MEMBERS} members")


def _unpack(host: str, archive: tarfile.TarFile, reading: _Bounded, target: Path) -> None:
    directories, links = [], []
    alone, left = False, MOST_BYTES
    for number, member in enumerate(_members(archive, reading)):
        if alone:
            raise tarfile.TarError(f"{member.name!a} comes after what was to be one file")
        alone = number == 0 and member.isreg()
        place = target if alone else target / _inside(member.name)
        if member.isdir():
            place.mkdir(mode=0o700)
            directories.append((place, member.mode, member.mtime))
        elif member.isreg():
            if (left := left - member.size) < 0:
                raise TooMuch(host, MOST_BYTES)
            _write(archive, reading, member, place)
        elif member.issym():
            links.append((place, member.linkname))
    # Last of all, so that nothing is written through one.
    for place, leads_to in links:
        place.symlink_to(leads_to)
    for place, mode, mtime in reversed(directories):
        place.chmod(mode & PERMISSIONS)
        os.utime(place, (mtime, mtime))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{name!a} lies outside of it")
    return path


def _write(archive: tarfile.TarFile, reading: _Bounded, member: tarfile.TarInfo, place: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None  # a regular file has one
    reading.is_content = True
    try:
        with content, place.open("xb") as file:
            while block := content.read(BLOCK_BYTES):
                if block.count(0) == len(block):  # what was not sent takes no disk here either
                    file.seek(len(block), os.SEEK_CUR)
                else:
                    file.write(block)
            file.truncate(member.size)
            os.fchmod(file.fileno(), member.mode & PERMISSIONS)
    finally:
        reading.is_content = False
    os.utime(place, (member.mtime, member.mtime))


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member

"""Files and directories as a tar stream, which copies them to a host and from one.

An archive from a host is treated as hostile: nothing is written outside the target, no device is made, and no file
gets another owner or the setuid bit. Unpacking is bounded in bytes, members and bytes of each member's headers.
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
"""Bytes of one copy from a host. Larger trees have to be copied in parts."""
MOST_MEMBERS = 500_000
MOST_SAID_BYTES = 1 << 17
"""Bytes of one member's headers: its name and its link's target, each up to 4096 bytes (PATH_MAX), and more."""
UNREADABLE = (tarfile.TarError, ValueError, OverflowError, LookupError, EOFError)
"""What tarfile raises for data that is no archive, or that was made to break its reader."""
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
"""A script for `sh -euc` that packs the path $1 of a host to stdout. A file of /proc claims to be empty, so it is
copied first. tar exits with 1 when a file grew while it was read, as logs do.
"""


def packing(source: PurePosixPath) -> list[str]:
    """The command that packs a file, or a directory with its content, to its stdout."""
    return ["sh", "-euc", PACK, "sh", str(source)]


def pack(source: Path, target: PurePosixPath, file: IO[bytes]) -> None:
    """Pack `source` into `file` under the target's name, owned by root."""
    with tarfile.TarFile(fileobj=file, mode="w", copybufsize=BLOCK_BYTES) as archive:
        archive.add(source, arcname=target.name, filter=_owned_by_root)


def unpack(host: str, packed: IO[bytes], target: Path) -> None:
    """Unpack what `packing` packed on `host` to `target`, a file or a directory, which must not exist.

    Modes and times are kept, except setuid, setgid and the sticky bit. Devices, pipes and sockets are left out. Blocks
    of zeros become holes. Raises HostFailed for a broken archive.
    """
    reading = _Bounded(packed)
    try:
        with tarfile.TarFile(fileobj=reading) as archive:
            _unpack(host, archive, reading, target)
    except UNREADABLE as error:
        raise HostFailed(f"host {host} sent no whole archive: {error}") from error


class TooMuch(HostFailed):
    """A host sends more than one copy may hold."""

    def __init__(self, host: str, most_bytes: int) -> None:
        super().__init__(f"host {host} sends more than {most_bytes / 1e9:.1f} GB at once: bring it in parts")


class Counted:
    """Writes the archive that a host sends into a file, up to `most_bytes`."""

    def __init__(self, host: str, file: IO[bytes], most_bytes: int = MOST_BYTES) -> None:
        self._host, self._file, self._most_bytes, self._left = host, file, most_bytes, most_bytes

    def write(self, piece: bytes) -> None:
        """Raises TooMuch."""
        self._left -= len(piece)
        if self._left < 0:
            raise TooMuch(self._host, self._most_bytes)
        self._file.write(piece)


class _Bounded(io.RawIOBase):
    """A file of which at most MOST_SAID_BYTES of headers are read between two calls of `next_member`; members' content
    is read in blocks and does not count.
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
            raise tarfile.ReadError("a member's headers are too long")
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
    """The members one after the other; none is kept in memory."""
    for _ in range(MOST_MEMBERS):
        reading.next_member()
        member = archive.next()
        if member is None:
            return
        archive.members.clear()  # type: ignore[attr-defined]  # tarfile would keep all of them
        if member.size < 0:
            raise tarfile.TarError(f"{member.name!a} has a negative size")
        if member.issparse():
            raise tarfile.TarError(f"{member.name!a} is sparse, and a host's tar sends no sparse files")
        yield member
    raise tarfile.TarError(f"it has more than {MOST_MEMBERS} members")


def _unpack(host: str, archive: tarfile.TarFile, reading: _Bounded, target: Path) -> None:
    directories, links = [], []
    alone, left = False, MOST_BYTES
    for number, member in enumerate(_members(archive, reading)):
        if alone:
            raise tarfile.TarError(f"{member.name!a} follows the only file of the archive")
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
    # Links come last, so that no file is written through one.
    for place, leads_to in links:
        place.symlink_to(leads_to)
    for place, mode, mtime in reversed(directories):
        place.chmod(mode & PERMISSIONS)
        os.utime(place, (mtime, mtime))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{name!a} leads out of the target")
    return path


def _write(archive: tarfile.TarFile, reading: _Bounded, member: tarfile.TarInfo, place: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None  # a regular file has one
    reading.is_content = True
    try:
        with content, place.open("xb") as file:
            while block := content.read(BLOCK_BYTES):
                if block.count(0) == len(block):  # zeros become a hole
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

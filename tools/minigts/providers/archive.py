"""Files and directories as a tar stream, which copies them to a host, from one, and from one to another.

An archive from a host is treated as hostile. Its first member is the file or the directory that was asked for, and
every other one lies in a directory of the archive itself; each is made below a descriptor of the directory above it, so
no link is followed. No device is made, no file gets another owner or the setuid bit, and a link that leads out of the
copy is left out. Reading is bounded in bytes, members and bytes of each member's headers, and takes memory for one
member and the directories around it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, Self

from minigts.errors import HostFailed
from minigts.machine import beneath

PERMISSIONS = 0o777
BLOCK_BYTES = 1 << 20
MOST_BYTES = 4 << 30
"""Bytes of one copy from a host. Larger trees have to be copied in parts."""
MOST_MEMBERS = 500_000
MOST_SAID_BYTES = 1 << 17
"""Bytes of one member's headers: its name and its link's target, each up to 4096 bytes (PATH_MAX), and more."""
LONGEST_PATH = 4096
"""Bytes of a member's path and of a link's target: PATH_MAX."""
LATEST_S = (1 << 33) - 1
"""The latest time, in seconds since 1970, that a header of tar has digits for."""
MOST_NAMED = 3
"""How many of the links that were left out are named."""
UNREADABLE = (tarfile.TarError, ValueError, OverflowError, LookupError, EOFError, RecursionError)
"""What tarfile raises for data that is no archive, or that was made to break its reader."""
_OF_A_NAME = (
    *(errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),
)
"""Errors for which a member's name is the reason, and not this machine's disk."""
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


def pack_below(directory: Path, paths: Iterable[Path], file: IO[bytes]) -> None:
    """Pack these files and links under their paths below `directory`, owned by root. Folders are no members: a host
    that unpacks makes those that it lacks, and keeps its links to folders, such as /sbin."""
    with tarfile.TarFile(fileobj=file, mode="w", copybufsize=BLOCK_BYTES) as archive:
        for path in paths:
            archive.add(path, path.relative_to(directory).as_posix(), recursive=False, filter=_owned_by_root)


@dataclass(frozen=True)
class Copy:
    """What an archive of a host held."""

    size_bytes: int
    """The size of its files."""
    is_directory: bool
    left_out: tuple[str, ...] = ()
    """The first MOST_NAMED links that lead out of the copy, which are left out."""
    left_out_number: int = 0


def unpack(host: str, packed: IO[bytes], target: Path) -> Copy:
    """Unpack what `packing` packed on `host` to `target`, a file or a directory, which must not exist.

    Modes and times are kept, except setuid, setgid and the sticky bit. Devices, pipes, sockets and hard links are left
    out, and links that lead out of the copy. Blocks of zeros become holes. Raises HostFailed for a broken archive, and
    OSError for what this machine refuses.
    """
    with _OnDisk(target) as disk:
        return _read(host, packed, disk)


def hand_on(host: str, packed: IO[bytes], target: PurePosixPath, into: IO[bytes], beside: Path) -> Copy:
    """Write what `packing` packed on `host` into `into` as another archive, of `target` on another host, made anew from
    each member's name, kind, mode, time and content. All links stay links, since a host's links are about its own
    files. `beside` is a directory for a temporary file. Raises HostFailed for a broken archive.
    """
    with tempfile.TemporaryFile(dir=beside) as links:
        made = _InArchive(target.name, into, links)
        copy = _read(host, packed, made)
        made.end()
    return copy


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

    @contextlib.contextmanager
    def content(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[IO[bytes]]:
        """A context with a regular file's content."""
        content = archive.extractfile(member)
        assert content is not None  # a regular file has one
        self.is_content = True
        try:
            with content:
                yield content
        finally:
            self.is_content = False


class _Place(Protocol):
    """Where an archive's members go. A path is given by its parts, and has none for the copied file or directory."""

    def file(self, parts: tuple[str, ...], member: tarfile.TarInfo, content: IO[bytes]) -> None: ...
    def link(self, parts: tuple[str, ...], leads_to: str) -> None: ...
    def directory(self, parts: tuple[str, ...], member: tarfile.TarInfo) -> None: ...

    def leave(self, parts: tuple[str, ...], mode: int, time_s: float) -> None:
        """Nothing more comes into this directory."""
        ...

    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def left_out_number(self) -> int: ...


def _read(host: str, packed: IO[bytes], place: _Place) -> Copy:
    """Put the members of an archive into `place`. Raises HostFailed for an archive that `packing` does not make."""
    reading, size_bytes, around = _Bounded(packed), 0, _Around()
    try:
        with tarfile.TarFile(fileobj=reading) as archive:
            for member in _members(archive, reading):
                parts = around.parts(member)
                for left in around.left_for(parts):
                    place.leave(*left)
                around.require_within(parts, member)
                with _naming(member) if parts else contextlib.nullcontext():
                    if member.isdir():
                        place.directory(parts, member)
                        around.enter(parts, member)
                    elif member.issym():
                        place.link(parts, _target_of(member))
                    elif member.isreg():
                        if (size_bytes := size_bytes + member.size) > MOST_BYTES:
                            raise TooMuch(host, MOST_BYTES)
                        with reading.content(archive, member) as content:
                            place.file(parts, member, content)
            for left in around.left_at_the_end():
                place.leave(*left)
    except UNREADABLE as error:
        raise HostFailed(f"host {host} sent no whole archive: {error}") from error
    return Copy(size_bytes, not around.is_file, place.left_out, place.left_out_number)


def _members(archive: tarfile.TarFile, reading: _Bounded) -> Iterator[tarfile.TarInfo]:
    """The members one after the other; none is kept in memory."""
    for _ in range(MOST_MEMBERS):
        reading.next_member()
        member = archive.next()
        if member is None:
            return
        archive.members.clear()  # type: ignore[attr-defined]  # tarfile would keep all of them
        if archive.pax_headers:
            raise tarfile.TarError("it has headers for all members, and a host's tar sends none")
        if member.size < 0:
            raise tarfile.TarError(f"{_shown(member)} has a negative size")
        if member.issparse():
            raise tarfile.TarError(f"{_shown(member)} is sparse, and a host's tar sends no sparse files")
        yield member
    raise tarfile.TarError(f"it has more than {MOST_MEMBERS} members")


def _shown(member: tarfile.TarInfo) -> str:
    return ascii(member.name[:LONGEST_PATH])


@contextlib.contextmanager
def _naming(member: tarfile.TarInfo) -> Iterator[None]:
    """Turns errors for which the member's name is the reason into TarError."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_A_NAME:
            raise
        raise tarfile.TarError(f"{_shown(member)} cannot be made here: {error.strerror}") from error


def _target_of(member: tarfile.TarInfo) -> str:
    if not 0 < len(os.fsencode(member.linkname)) < LONGEST_PATH:
        raise tarfile.TarError(f"{_shown(member)} leads to no path")
    return member.linkname


def stays_inside(parts: tuple[str, ...], leads_to: str) -> bool:
    """Whether the link at this path leads to a place in the same copy, whatever other such links there are.

    `..` may stand only at the beginning, where it goes up directories that the copy itself has made; behind another
    link's name it would go up from wherever that one leads. Rsync's --safe-links has the same rule.
    """
    words = [word for word in leads_to.split("/") if word not in ("", ".")]
    up = next((number for number, word in enumerate(words) if word != ".."), len(words))
    return not leads_to.startswith("/") and ".." not in words[up:] and up < len(parts)


class _Around:
    """The directories around a member of an archive. tar writes a directory, and then at once all that is in it; an
    archive in another order is refused, so that no more than these has to be known.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._settings: list[tuple[int, float]] = []
        """Mode and time of the copied directory, and of each directory in `_names`."""
        self.is_file = False

    def parts(self, member: tarfile.TarInfo) -> tuple[str, ...]:
        """The parts of a member's path. Raises TarError for a path that leads out of the copy, and for one that is the
        copy itself, unless the member is the first."""
        if self.is_file:
            raise tarfile.TarError(f"{_shown(member)} follows the only file of the archive")
        # Not by pathlib, which has Python keep the names of all paths in one table.
        parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
        if member.name.startswith("/") or ".." in parts or len(os.fsencode(member.name)) >= LONGEST_PATH:
            raise tarfile.TarError(f"{_shown(member)} leads out of the target")
        if self._settings and not parts:
            raise tarfile.TarError(f"{_shown(member)} is the target itself once more")
        if not self._settings:
            self.is_file = member.isreg()
            if not self.is_file and (parts or not member.isdir()):
                raise tarfile.TarError(f"{_shown(member)} is neither the file nor the directory that was asked for")
        return () if self.is_file else parts

    def left_for(self, parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int, float]]:
        """The directories in which this path does not lie, from the innermost, each with its mode and time."""
        while self._names and parts[:-1][: len(self._names)] != tuple(self._names):
            yield tuple(self._names), *self._settings.pop()
            self._names.pop()

    def left_at_the_end(self) -> Iterator[tuple[tuple[str, ...], int, float]]:
        """All directories that are left. Raises TarError for an archive without a member."""
        if not self.is_file and not self._settings:
            raise tarfile.TarError("it is empty")
        while self._settings:
            yield tuple(self._names), *self._settings.pop()
            del self._names[-1:]

    def require_within(self, parts: tuple[str, ...], member: tarfile.TarInfo) -> None:
        """Raises TarError for a path that lies in no directory of the archive."""
        if parts and parts[:-1] != tuple(self._names):
            raise tarfile.TarError(f"{_shown(member)} does not follow the directory that it is in")

    def enter(self, parts: tuple[str, ...], member: tarfile.TarInfo) -> None:
        self._names[:] = parts
        self._settings.append((member.mode & PERMISSIONS, member.mtime))


class _OnDisk:
    """Makes the members at `target`. All that is below it is made and opened by descriptors of directories."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.left_out: tuple[str, ...] = ()
        self.left_out_number = 0
        self._open = contextlib.ExitStack()
        self._top = -1
        self._above: tuple[str, ...] = ()
        self._at = -1
        """The descriptor of the directory `_above`, since most members lie in the same one as the member before."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._forget()
        self._open.close()

    def file(self, parts: tuple[str, ...], member: tarfile.TarInfo, content: IO[bytes]) -> None:
        if parts:
            at, name = self._directory_of(parts), parts[-1]
        else:
            at, name = self._opened(self.target.parent, os.O_PATH), self.target.name
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        with os.fdopen(descriptor, "wb") as file:
            with_holes = _Holes(file)
            while block := content.read(BLOCK_BYTES):
                with_holes.write(block)
            with_holes.end()
            os.fchmod(descriptor, member.mode & PERMISSIONS)
            file.flush()
            os.utime(descriptor, (member.mtime, member.mtime))

    def link(self, parts: tuple[str, ...], leads_to: str) -> None:
        if stays_inside(parts, leads_to):
            os.symlink(leads_to, parts[-1], dir_fd=self._directory_of(parts))
            return
        self.left_out_number += 1
        if len(self.left_out) < MOST_NAMED:
            self.left_out += ("/".join(parts),)

    def directory(self, parts: tuple[str, ...], _member: tarfile.TarInfo) -> None:
        if parts:
            os.mkdir(parts[-1], 0o700, dir_fd=self._directory_of(parts))
        else:
            self.target.mkdir(0o700)
            self._top = self._opened(self.target, os.O_RDONLY | os.O_NOFOLLOW)

    def leave(self, parts: tuple[str, ...], mode: int, time_s: float) -> None:
        self._forget()
        name = "/".join(parts) or "."
        descriptor = beneath.open_beneath(self._top, name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fchmod(descriptor, mode)
            os.utime(descriptor, (time_s, time_s))
        finally:
            os.close(descriptor)

    def _directory_of(self, parts: tuple[str, ...]) -> int:
        above = parts[:-1]
        if self._at < 0 or above != self._above:
            self._forget()
            name = "/".join(above) or "."
            self._at = beneath.open_beneath(self._top, name, os.O_PATH | os.O_DIRECTORY)
            self._above = above
        return self._at

    def _forget(self) -> None:
        if self._at >= 0:
            os.close(self._at)
        self._at = -1

    def _opened(self, directory: Path, flags: int) -> int:
        descriptor = os.open(directory, flags | os.O_DIRECTORY | os.O_CLOEXEC)
        self._open.callback(os.close, descriptor)
        return descriptor


class _InArchive:
    """Writes the members into an archive for another host, under the name `name`. Links come last, so that no file is
    written through one; until then they are in the file `kept`.
    """

    left_out: tuple[str, ...] = ()
    left_out_number = 0

    def __init__(self, name: str, into: IO[bytes], kept: IO[bytes]) -> None:
        self._name, self._file, self._kept = name, _Holes(into), kept
        self._made, self._links = _archive_into(self._file), _archive_into(kept)

    def end(self) -> None:
        """Write the links."""
        self._links.close()
        self._kept.seek(0)
        while block := self._kept.read(BLOCK_BYTES):
            self._file.write(block)
        self._file.end()

    def file(self, parts: tuple[str, ...], member: tarfile.TarInfo, content: IO[bytes]) -> None:
        self._add(self._made, parts, member, tarfile.REGTYPE, content)

    def link(self, parts: tuple[str, ...], leads_to: str) -> None:
        self._add(self._links, parts, None, tarfile.SYMTYPE, leads_to=leads_to)

    def directory(self, parts: tuple[str, ...], member: tarfile.TarInfo) -> None:
        self._add(self._made, parts, member, tarfile.DIRTYPE)

    def leave(self, parts: tuple[str, ...], mode: int, time_s: float) -> None:
        """tar sets a directory's mode and time itself."""

    def _add(
        self,
        archive: tarfile.TarFile,
        parts: tuple[str, ...],
        member: tarfile.TarInfo | None,
        kind: bytes,
        content: IO[bytes] | None = None,
        leads_to: str = "",
    ) -> None:
        made = _owned_by_root(tarfile.TarInfo("/".join((self._name, *parts))))
        made.type, made.linkname = kind, leads_to
        if member is not None:
            made.mode, made.mtime = member.mode & PERMISSIONS, min(max(0, int(member.mtime)), LATEST_S)
            made.size = member.size if content is not None else 0
        archive.addfile(made, content)
        archive.members.clear()  # type: ignore[attr-defined]  # tarfile would keep all of them


def _archive_into(file: IO[bytes] | _Holes) -> tarfile.TarFile:
    """An archive for GNU tar, which takes names of any bytes in this format."""
    return tarfile.TarFile(fileobj=file, mode="w", format=tarfile.GNU_FORMAT, copybufsize=BLOCK_BYTES)  # type: ignore[arg-type]


class _Holes:
    """Writes into an empty file, in which blocks of zeros become holes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._size = file, 0

    def write(self, block: bytes) -> int:
        self._size += len(block)
        if len(block) == BLOCK_BYTES and block.count(0) == len(block):
            self._file.seek(len(block), os.SEEK_CUR)
        else:
            self._file.write(block)
        return len(block)

    def tell(self) -> int:
        return self._size

    def end(self) -> None:
        """Give the file its whole size."""
        self._file.truncate(self._size)


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member

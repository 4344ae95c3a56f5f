"""Files and directories as a stream of tar: how they come to a host, and how they come from one.

What comes from a host is taken for an attack until it has been looked at: nothing is written outside the target, no
device is made, no file gets another owner, nor the right to run as its owner.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from minigts.errors import HostFailed

PERMISSIONS = 0o777
BLOCK_BYTES = 1 << 20
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

    Modes and times are kept, but for setuid, setgid and the sticky bit. Devices, pipes and sockets are left out. Raises
    HostFailed for what is no such archive.
    """
    try:
        with tarfile.TarFile(fileobj=packed) as archive:
            _unpack(archive, target)
    except tarfile.TarError as error:
        raise HostFailed(f"host {host} sent no whole archive: {error}") from error


def _unpack(archive: tarfile.TarFile, target: Path) -> None:
    members = archive.getmembers()
    alone = len(members) == 1 and members[0].isreg()
    directories, links = [], []
    for member in members:
        place = target if alone else target / _inside(member.name)
        if member.isdir():
            place.mkdir(mode=0o700)
            directories.append((place, member))
        elif member.isreg():
            _write(archive, member, place)
        elif member.issym():
            links.append((place, member))
    # Last of all, so that nothing is written through one.
    for place, member in links:
        place.symlink_to(member.linkname)
    for place, member in reversed(directories):
        place.chmod(member.mode & PERMISSIONS)
        os.utime(place, (member.mtime, member.mtime))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{name!a} lies outside of it")
    return path


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None  # a regular file has one
    with content, place.open("xb") as file:
        shutil.copyfileobj(content, file, BLOCK_BYTES)
        os.fchmod(file.fileno(), member.mode & PERMISSIONS)
    os.utime(place, (member.mtime, member.mtime))


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member

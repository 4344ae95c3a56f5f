"""How files come to a host: packed with tar, and unpacked there with their modes."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from minigts.providers.base import Provider
from minigts.providers.uml import confinement

TIMEOUT_S = 120.0
PACKED = "packed.tar"
UNPACK_SHARED = """
from=$(mktemp -d)
mount -t hostfs -o "hostfs=$1" none "$from"
mkdir -p "$3" && tar -x --no-same-owner -C "$3" -f "$from/$2" || failed=yes
umount "$from"
rmdir "$from"
[ -z "${failed:-}" ]
"""
"""A guest reads from a directory of this machine many times quicker than from its control line."""
UNPACK = 'mkdir -p "$1" && tar -x --no-same-owner -C "$1"'


def put(provider: Provider, host: str, directory: Path | None, source: Path, target: PurePosixPath) -> None:
    """`Provider.put` for a host in a User-Mode Linux kernel whose hostfs begins in `directory`, or elsewhere (None).

    A kernel that cannot be confined has no hostfs.
    """
    if directory is None or confinement.version() == 0:
        packed = io.BytesIO()
        _pack(source, target, packed)
        argv = ["sh", "-euc", UNPACK, "sh", str(target.parent)]
        provider.run(host, argv, timeout_s=TIMEOUT_S, stdin=packed.getvalue())
        return
    with tempfile.TemporaryDirectory(dir=directory, prefix="put.") as place:
        with (Path(place) / PACKED).open("wb") as file:
            _pack(source, target, file)
        argv = ["sh", "-euc", UNPACK_SHARED, "sh", Path(place).name, PACKED, str(target.parent)]
        provider.run(host, argv, timeout_s=TIMEOUT_S)


def _pack(source: Path, target: PurePosixPath, file: io.IOBase) -> None:
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(source, arcname=target.name, filter=_owned_by_root)


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member

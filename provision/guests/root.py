#!/usr/bin/python3 -SE
"""On a host: makes the user's image its second root, and says where a path of that root lies.

root.py unpack IMAGE.tar    a file of `docker save`, or a root file system; into ROOT
root.py place PATH          the path as seen from outside of ROOT, links within it followed

Whatever the archive holds, nothing outside of ROOT is written to. Devices and pipes are left out: the host has its own.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import sys
import tarfile
import zlib
from collections import deque
from pathlib import Path

ROOT, HERE = Path("/var/lib/minigts/root"), Path("/usr/lib/minigts/own-root")
BROKEN = 65
"""The exit code for an archive that is none: EX_DATAERR of sysexits.h."""
MOST_LINKS = 40
"""On the way to a file; Linux follows as many (path_resolution(7))."""
GONE, OPAQUE = ".wh.", ".wh..wh..opq"
"""What a layer says of those below it: OCI Image Format Specification, layer.md, *Whiteouts*."""


def within(root: Path, path: str) -> Path:
    """Where `path` lies when `root` is the root; every link on the way is followed, the last one too."""
    left, here, links = deque(path.split("/")), root, 0
    while left:
        name = left.popleft()
        if name == "..":
            here = here if here == root else here.parent
        elif name not in ("", "."):
            there = here / name
            if not there.is_symlink():
                here = there
                continue
            links += 1
            if links > MOST_LINKS:
                raise ValueError(f"{path}: too many links")
            target = os.readlink(there)  # noqa: PTH115 - as it is written
            here = root if target.startswith("/") else here
            left.extendleft(reversed(target.split("/")))
    return here


def unpack(image: str, root: Path) -> list[str]:
    """Unpack an image; the variables that it wants its programs to have."""
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(image) as archive:
        described = next((each for each in archive if each.name == "manifest.json"), None)
        if described is None:
            spread(archive, root)
            return []
        entry = json.load(archive.extractfile(described))[0]
        for layer in entry["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(layer)) as content:
                spread(content, root)
        settings = json.load(archive.extractfile(entry["Config"])).get("config") or {}
        return settings.get("Env") or []


def spread(archive: tarfile.TarFile, root: Path) -> None:
    """Put a layer, or a whole root file system, onto what is there."""
    kept = []
    for member in archive.getmembers():
        folder, name = parted(member.name)
        if name == OPAQUE:
            for each in within(root, folder).glob("*"):
                remove(each)
        elif name.startswith(GONE):
            remove(within(root, folder) / name.removeprefix(GONE))
        elif name not in ("", ".", "..") and not member.isdev():
            kept.append(member)
    archive.extraction_filter = lambda member, _: member  # `placed` has looked; Python's own would take modes away
    for member in kept:
        archive.extract(placed(member, root), root, numeric_owner=True)


def placed(member: tarfile.TarInfo, root: Path) -> tarfile.TarInfo:
    """The member where it is to be, whose place is free then."""
    folder, name = parted(member.name)
    target = within(root, folder) / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not (member.isdir() and target.is_dir() and not target.is_symlink()):
        remove(target)
    member.name = str(target.relative_to(root))
    if member.islnk():
        folder, name = parted(member.linkname)
        source = within(root, folder) / name
        if source.is_symlink():  # a second name of a link is one; as a hard link its modes would be those of its target
            member.type, member.linkname = tarfile.SYMTYPE, os.readlink(source)  # noqa: PTH115 - as it is written
        else:
            member.linkname = str(source.relative_to(root))
    return member


def parted(path: str) -> tuple[str, str]:
    """The way to it, and its own name."""
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder, name


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> None:
    verb, path = sys.argv[1:]
    if verb == "place":
        sys.stdout.write(f"{within(ROOT, path)}\n")
        return
    try:
        variables = unpack(path, ROOT)
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"it cannot be unpacked: {' '.join(str(error).split())}\n")
        raise SystemExit(BROKEN) from None
    (ROOT / "root").mkdir(exist_ok=True)
    (HERE / "environment").write_bytes(b"".join(os.fsencode(each) + b"\0" for each in variables))


if __name__ == "__main__":
    main()

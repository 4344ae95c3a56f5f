"""What a hostile kernel could have changed on this machine, as it is at one moment, and what differs between two.

Files by mode, owner, links, size, times, extended attributes, flags, and, where they are small, content; without the
times of reading. Locks. What is shared through descriptors: the flags and positions of the open files of the lab's
supervisor, clock and other kernels, and whether these run. What a kernel can use up of limits that count for its user
is measured by `bench/run limits`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

SMALL_BYTES = 1 << 16
GET_FLAGS = 0x80086601
"""FS_IOC_GETFLAGS of ioctl_iflags(2)."""
EXTENTS = 0x80000
"""FS_EXTENT_FL, which says how ext4 keeps a file."""


@dataclass(frozen=True)
class Zone:
    """A part of the machine, and what is looked at there."""

    name: str
    paths: tuple[Path, ...]
    is_deep: bool = False
    """Whether all below these paths belongs to it."""
    is_its_own: bool = False
    """Whether a kernel may write the files there: then contents, sizes and times are not looked at."""


FileState: TypeAlias = Mapping[str, object]
State: TypeAlias = "dict[tuple[str, str], FileState]"
"""For each thing, by its zone and its name, its attributes."""


@dataclass(frozen=True, order=True)
class Change:
    zone: str
    what: str

    def __str__(self) -> str:
        return f"{self.zone}: {self.what}"


def look(zones: Sequence[Zone], processes: Mapping[str, int], hostile: int) -> State:
    """The state of these zones, of what these processes share with a kernel, and of the locks that the process
    `hostile` holds. A path belongs to the first zone that has it."""
    found: State = {}
    seen = set[Path]()
    for zone in zones:
        for path in _files(zone):
            if path not in seen:
                seen.add(path)
                with contextlib.suppress(FileNotFoundError):
                    found[zone.name, str(path)] = _file(path, zone.is_its_own)
    for name, pid in processes.items():
        found["processes", name] = {"kind": name, "runs": runs(pid)}
        for number, state in _descriptors(pid).items():
            found[f"open files of {name}", str(number)] = state
    locks = _locks(hostile, found)
    for number, lock in enumerate(locks):
        found["locks", f"{lock} {locks[:number].count(lock)}"] = {"kind": lock}
    return found


def runs(pid: int) -> bool:
    """Whether the process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def changes(before: State, after: State) -> set[Change]:
    """What differs, without the things' names."""
    found = set()
    for key in before.keys() | after.keys():
        zone = key[0]
        if key not in before:
            found.add(Change(zone, f"a {after[key]['kind']} is made"))
        elif key not in after:
            found.add(Change(zone, f"a {before[key]['kind']} is gone"))
        else:
            names = [name for name, value in before[key].items() if after[key].get(name) != value]
            found.update(Change(zone, name) for name in names if name not in ("times", "place") or len(names) == 1)
    return found


def restore(before: State, after: State) -> None:
    """Undo changes of files outside of a kernel's own reach of content: modes, owners, attributes, flags, new files."""
    for (_, name), state in after.items():
        path = Path(name)
        was = next((each for (_, other), each in before.items() if other == name), None)
        if not name.startswith("/") or was == state:
            continue
        if was is None:
            with contextlib.suppress(OSError):
                path.rmdir() if state["kind"] == "directory" else path.unlink()
            continue
        _undo(path, was, state)


def _undo(path: Path, was: FileState, state: FileState) -> None:
    if was.get("flags") != state.get("flags"):
        _set_flags(path, int(str(was["flags"])))
    if was["owner"] != state["owner"]:
        user, group = was["owner"]  # type: ignore[misc]
        os.chown(path, user, group, follow_symlinks=False)
    if was["mode"] != state["mode"]:
        path.chmod(stat.S_IMODE(int(str(was["mode"]))))
    given, had = dict(state["attributes"]), dict(was["attributes"])  # type: ignore[call-overload]
    for name in given.keys() - had.keys():
        os.removexattr(path, name)
    if "times" in was and was["times"] != state["times"]:
        os.utime(path, ns=(path.stat().st_atime_ns, was["times"][0]))  # type: ignore[index]


def _files(zone: Zone) -> list[Path]:
    return [each for path in zone.paths for each in ([path, *path.rglob("*")] if zone.is_deep else [path])]


def _file(path: Path, is_its_own: bool) -> FileState:
    now = path.lstat()
    kind = stat.S_IFMT(now.st_mode)
    state: dict[str, object] = {
        "kind": {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}.get(kind, "special file"),
        "mode": now.st_mode,
        "owner": (now.st_uid, now.st_gid),
        "attributes": _attributes(path),
        "place": (now.st_dev, now.st_ino),
    }
    if kind != stat.S_IFDIR:
        state["links"] = now.st_nlink
    if kind == stat.S_IFREG:
        state["flags"] = _flags(path)
    if not is_its_own:
        state["times"] = (now.st_mtime_ns, now.st_ctime_ns)
        state["size"] = now.st_size
        if kind == stat.S_IFREG and now.st_size <= SMALL_BYTES:  # a larger one's shows by its times
            state["content"] = path.read_bytes()
    return state


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    except OSError:
        return ()


def _flags(path: Path) -> int:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME)
    except OSError:
        return 0
    try:
        return int(struct.unpack("L", fcntl.ioctl(opened, GET_FLAGS, bytes(8)))[0]) & ~EXTENTS
    except OSError:
        return 0
    finally:
        os.close(opened)


def _set_flags(path: Path, flags: int) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(opened, 0x40086602, struct.pack("L", flags | EXTENTS))
    finally:
        os.close(opened)


_FLAGS = re.compile(r"^flags:\s+(\d+)$", re.MULTILINE)
_POSITION = re.compile(r"^pos:\s+(\d+)$", re.MULTILINE)


def _descriptors(pid: int) -> dict[int, FileState]:
    found: dict[int, FileState] = {}
    try:
        numbers = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return found
    for each in numbers:
        with contextlib.suppress(OSError, ValueError):
            text, target = Path(f"/proc/{pid}/fdinfo/{each.name}").read_text(), str(each.readlink())
            flags, position = _FLAGS.search(text), _POSITION.search(text)
            if flags and position:
                kind = "socket" if target.startswith("socket:") else "descriptor"
                found[int(each.name)] = {"kind": kind, "flags": flags[1], "position": position[1]}
    return found


def _locks(pid: int, files: State) -> list[str]:
    """A clause for each lock that a process holds."""
    places = {state["place"]: zone for (zone, _), state in files.items() if "place" in state}
    found = []
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if len(words) > 5 and words[4] == str(pid):
            major, minor, inode = words[5].split(":")
            place = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
            found.append(f"lock to {words[3].lower()} of {places.get(place, 'what has no name')}")
    return sorted(found)

"""Files below a directory that a host, or another stranger, has filled: no link is followed on the way to them.

A path is opened by openat2(2), which the kernel itself holds below the directory. A kernel before Linux 5.6, and a
filter that refuses this call, get the same by opening one directory after the other.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

OPENAT2 = 437
"""The number of the system call, for which the C library has no function; it is the same on all kinds of processor."""
NO_SYMLINKS, BENEATH = 0x04, 0x08
"""RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH of linux/openat2.h."""
LARGEST_LOG_BYTES = 16 << 20
"""Bytes that are read of the end of a log. Every log that minigts copies is shorter."""
NOT_READ = "[this is no plain file, so minigts does not read it]\n"
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_WITHOUT_THE_CALL = (errno.ENOSYS, errno.EPERM)
"""What an older kernel answers, and a filter of a container."""


@contextmanager
def open_directory(directory: Path) -> Iterator[int]:
    """A context with the descriptor of a directory, which is no link. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_beneath(directory: int, name: str, flags: int, mode: int = 0) -> int:
    """Open the path `name`, which is relative to the open directory; return its descriptor. `flags` and `mode` are
    those of `os.open`.

    Raises OSError for a path that leads out of the directory, and for one with a link in it, also at its end.
    """
    _require_inside(name)
    try:
        descriptor = _by_one_call(directory, name, flags | _FLAGS, mode)
    except OSError as error:
        if error.errno not in _WITHOUT_THE_CALL:
            raise
        descriptor = _step_by_step(directory, name, flags | _FLAGS, mode)
    if flags & os.O_PATH and stat.S_ISLNK(os.fstat(descriptor).st_mode):  # both ways then open a last link itself
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return descriptor


def _require_inside(name: str) -> None:
    """Raises OSError for a path that is absolute or goes upwards, and ValueError for one that is no path."""
    if name.startswith("/") or ".." in name.split("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    if "\0" in name:
        raise ValueError("embedded null byte")


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _by_one_call(directory: int, name: str, flags: int, mode: int) -> int:
    how = ctypes.create_string_buffer(struct.pack("=QQQ", flags, mode, NO_SYMLINKS | BENEATH), 24)
    words = (ctypes.c_long(OPENAT2), ctypes.c_int(directory), os.fsencode(name), how, ctypes.c_size_t(24))
    descriptor = _libc().syscall(*words)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return int(descriptor)


def _step_by_step(directory: int, name: str, flags: int, mode: int) -> int:
    """Each directory on the way is opened by its own name in the one before, and never by way of a link."""
    *above, last = [part for part in name.split("/") if part not in ("", ".")] or ["."]
    at = directory
    try:
        for part in above:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | _FLAGS, dir_fd=at)
            if at != directory:
                os.close(at)
            at = below
        return os.open(last, flags, mode, dir_fd=at)
    finally:
        if at != directory:
            os.close(at)


@dataclass(frozen=True)
class Listing:
    """What a directory holds, in the order of names."""

    files: tuple[str, ...]
    """The names of its plain files."""
    others: tuple[str, ...]
    """The names of everything else that is no directory: links, pipes, sockets, devices."""


def listing(directory: Path, most: int = 100_000) -> Listing:
    """What the directory holds, up to so many names. Raises OSError."""
    files, others = [], []
    with open_directory(directory) as descriptor, os.scandir(descriptor) as entries:
        for _, entry in zip(range(most), entries, strict=False):
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif not entry.is_dir(follow_symlinks=False):
                others.append(entry.name)
    return Listing(tuple(sorted(files)), tuple(sorted(others)))


@contextmanager
def plain_file(directory: Path, name: str) -> Iterator[IO[bytes]]:
    """A context with a plain file below the directory, for reading. Raises OSError for anything else; no pipe is waited
    for."""
    with open_directory(directory) as above:
        descriptor = open_beneath(above, name, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{name} is no plain file")
        yield file


def read(directory: Path, name: str, most_bytes: int) -> bytes:
    """The content of a plain file below the directory. Raises OSError for anything else, and for a file that holds more
    than `most_bytes`."""
    with plain_file(directory, name) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"{name} holds more than {most_bytes} bytes")
    return content


def end_of(directory: Path, name: str, most_bytes: int = LARGEST_LOG_BYTES) -> bytes:
    """The last `most_bytes` of a plain file below the directory. Raises OSError for anything else."""
    with plain_file(directory, name) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
        return file.read(most_bytes)


def texts(directory: Path, most_bytes: int = LARGEST_LOG_BYTES) -> dict[str, str]:
    """The last `most_bytes` of each plain file in the directory, by its name, and in place of anything else but a
    directory a line that says so. Raises OSError when the directory cannot be read, or is a link."""
    found = listing(directory)
    shown = dict.fromkeys(found.others, NOT_READ)
    for name in found.files:
        try:
            shown[name] = end_of(directory, name, most_bytes).decode(errors="replace")
        except OSError:  # it was replaced meanwhile
            shown[name] = NOT_READ
    return dict(sorted(shown.items()))

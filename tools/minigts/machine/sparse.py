"""Copies files that are mostly holes, such as disks. Holes stay holes, and blocks are shared where possible."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

FICLONE = 0x40049409
"""The number of ioctl_ficlone(2) on x86-64: both files share their blocks until one of them is written to."""
CANNOT_SHARE = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)
_CHUNK_BYTES = 1 << 26


def copy(source: Path, target: Path) -> None:
    """Copy a regular file to `target`, which must not exist, with mode 0600; return when the copy is on the disk.

    Blocks are shared instead of copied where the file system can do so (btrfs, XFS); holes are never copied. A symbolic
    link is not followed. Raises OSError.
    """
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if not _shares(reading, writing):
                _copy_data(reading, writing)
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def occupied_bytes(path: Path) -> int:
    """Bytes that a file occupies on its disk, without holes; 0 if it does not exist."""
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0


def settle(path: Path) -> None:
    """Return when all data written to a file is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _shares(reading: int, writing: int) -> bool:
    try:
        fcntl.ioctl(writing, FICLONE, reading)
    except OSError as error:
        if error.errno not in CANNOT_SHARE:
            raise
        return False
    return True


def _copy_data(reading: int, writing: int) -> None:
    """Copy the data between holes (lseek(2), SEEK_DATA), up to the file's present size, since it may still grow."""
    size = os.fstat(reading).st_size
    os.ftruncate(writing, size)
    end = 0
    while end < size:
        try:
            begin = os.lseek(reading, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            raise
        end = min(size, os.lseek(reading, begin, os.SEEK_HOLE))
        os.lseek(writing, begin, os.SEEK_SET)
        while begin < end:
            copied = os.sendfile(writing, reading, begin, min(end - begin, _CHUNK_BYTES))
            if not copied:
                return
            begin += copied

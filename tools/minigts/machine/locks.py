"""Locks of files: advisory ones, by flock(2), which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Whether somebody holds the exclusive lock of a file: another process, or another thread of this one. A file that
    is missing, or cannot be opened, is locked by nobody; a symbolic link is not followed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False

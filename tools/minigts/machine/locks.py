"""Locks of files: advisory ones, by flock(2), which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from minigts.errors import BrokenOff

LOOK_EVERY_S = 0.2


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


@contextmanager
def hold_lock(path: Path, waits: Callable[[], None], broken_off: threading.Event | None = None) -> Iterator[None]:
    """A context for one process or thread at a time, which makes the file `path`. It calls `waits` once before it waits
    for another. Raises BrokenOff when another thread sets `broken_off` meanwhile."""
    with path.open("w") as lock:
        if not _is_ours(lock):
            waits()
            while not _is_ours(lock):
                if broken_off is not None and broken_off.is_set():
                    raise BrokenOff("broken off")
                time.sleep(LOOK_EVERY_S)
        yield


def _is_ours(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

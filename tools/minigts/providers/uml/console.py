"""A kernel's console: what it says there, kept in a file of this machine that never grows beyond a size.

Whatever runs in a guest may write to its console for ever, or become the kernel's process and do with the console's
descriptor what it likes. So that is of a file in memory, sealed (fcntl(2), F_SEAL_GROW): its size can be changed by
nobody. The supervisor takes out what is new there, and starts it again from the beginning before it is full. What a
kernel says quicker than that is lost. No pipe, since it can be waited for: when there is room in one would be told to a
kernel whose time is not this machine's. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
from pathlib import Path

WINDOW_BYTES = 64 << 20
"""What a kernel can say between two looks of the supervisor, which a busy machine may hold up for seconds. Its terminal
does not go on after a write that found room for a part, so it has far more than it can use; what is not used takes no
memory.
"""
REWIND_BYTES = 1 << 19
"""After so much it begins anew."""
MOST_BYTES = 8 << 20
"""The file's size. One that is full keeps its second half."""
CHUNK_BYTES = 1 << 20
KEEP_SIZE_PUNCH_HOLE = 3
PANIC, PANIC_BYTES, PANIC_CHARACTERS = b"Kernel panic - not syncing:", 1 << 16, 160
"""How a kernel begins its last words, within how much of the end they are looked for, and how much of them is told."""
MARK = b"[minigts has left out what the console said before]\n"
STARTED = b"[minigts has started the kernel anew]\n"
"""What stands between what a kernel has said and what the next one of the same host says."""


class Console:
    """Of one start of a kernel, which gets `descriptor` as its standard output."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._length = self._begin = os.lseek(self._file, 0, os.SEEK_END)
        self.descriptor = os.memfd_create("console", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(self.descriptor, WINDOW_BYTES)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._taken = 0
        self._is_open = True

    def begin(self) -> None:
        """Mark in the file where this start begins, unless it is the first."""
        if self._length:
            self._write(STARTED)
            self._begin = self._length

    def said(self) -> bytes:
        """All that is in the file, at the most; nothing once it is closed."""
        self.take()
        return os.pread(self._file, MOST_BYTES, 0) if self._is_open else b""

    def take(self) -> None:
        """Move what is new into the file, if there is room on this machine; nothing once it is closed."""
        if self._is_open:
            with contextlib.suppress(OSError):
                self._take()

    def _take(self) -> None:
        """The descriptor's place is the kernel's own, and may be anywhere."""
        said = os.lseek(self.descriptor, 0, os.SEEK_CUR)
        if said < self._taken:
            self._taken = 0
        end = min(said, WINDOW_BYTES)
        for at in range(max(self._taken, end - MOST_BYTES), end, CHUNK_BYTES):
            self._write(os.pread(self.descriptor, min(CHUNK_BYTES, end - at), at))
        self._taken = end
        if said > REWIND_BYTES:
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            self._taken = 0
            _give_back(self.descriptor, REWIND_BYTES, WINDOW_BYTES - REWIND_BYTES)

    def close(self) -> None:
        self.take()
        self._is_open = False
        os.close(self.descriptor)
        os.close(self._file)

    def panic(self) -> str:
        """Of which the kernel has died by what it said since it was started, `Out of memory`; empty if of nothing."""
        self.take()
        begin = max(self._begin, self._length - PANIC_BYTES)
        _, said, rest = os.pread(self._file, PANIC_BYTES, begin).rpartition(PANIC) if self._is_open else (b"",) * 3
        why = "".join(each for each in rest.split(b"\n")[0].decode(errors="replace") if each.isprintable())
        return why.strip()[:PANIC_CHARACTERS] or "panic" if said else ""

    def _write(self, data: bytes) -> None:
        if self._length + len(data) > MOST_BYTES:
            kept = os.pread(self._file, MOST_BYTES // 2, max(0, self._length - MOST_BYTES // 2))
            self._begin = 0
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, MARK + kept, 0)
            self._length = len(MARK) + len(kept)
        os.pwrite(self._file, data, self._length)
        self._length += len(data)


def _give_back(descriptor: int, at: int, size: int) -> None:
    """The memory of a part of a file (fallocate(2)), if there is any."""
    ctypes.CDLL(None).fallocate(descriptor, KEEP_SIZE_PUNCH_HOLE, ctypes.c_long(at), ctypes.c_long(size))

"""A kernel's console, whose output is kept in a file of limited size.

A program in a guest may write to its console for ever, or take over the kernel's process and misuse the console's
descriptor. So the descriptor is of a file in memory whose size is sealed (fcntl(2), F_SEAL_GROW). The supervisor copies
new output to the console's file and rewinds the descriptor before the memory file is full; faster output is lost. A
pipe would not do: a kernel that waits for room in it would depend on this machine's time. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
from pathlib import Path

WINDOW_BYTES = 64 << 20
"""The size of the memory file: room for a kernel's output between two looks of the supervisor, which on a busy machine
may be seconds apart. A kernel's terminal stops for good after a partial write, so there is far more room than a kernel
can fill; unused room takes no memory.
"""
REWIND_BYTES = 1 << 19
"""The supervisor rewinds the descriptor after so much output."""
MOST_BYTES = 8 << 20
"""The largest size of the console's file. When it is full, only its second half is kept."""
CHUNK_BYTES = 1 << 20
KEEP_SIZE_PUNCH_HOLE = 3
PANIC, PANIC_BYTES, PANIC_CHARACTERS = b"Kernel panic - not syncing:", 1 << 16, 160
"""The beginning of a panic's message, how much of the output's end is searched for it, and how much of it is shown."""
MARK = b"[minigts has left out earlier output of the console]\n"
STARTED = b"[minigts has started the kernel anew]\n"
"""Separates the output of one kernel from that of the next one of the same host."""


class Console:
    """The console for one start of a kernel, whose standard output is `descriptor`."""

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
        """Write STARTED to the file, unless this is the host's first kernel."""
        if self._length:
            self._write(STARTED)
            self._begin = self._length

    def output(self) -> bytes:
        """All output in the file; empty once the console is closed."""
        self.take()
        return os.pread(self._file, MOST_BYTES, 0) if self._is_open else b""

    def take(self) -> None:
        """Copy new output to the file if this machine's disk has room; does nothing once the console is closed."""
        if self._is_open:
            with contextlib.suppress(OSError):
                self._take()

    def _take(self) -> None:
        """The kernel can move the descriptor's offset anywhere, and it writes on while this runs."""
        said = os.lseek(self.descriptor, 0, os.SEEK_CUR)
        if said < self._taken:
            self._taken = 0
        end = min(said, WINDOW_BYTES)
        self._copy(max(self._taken, end - MOST_BYTES), end)
        if said > REWIND_BYTES:
            self._rewind(end)

    def _rewind(self, end: int) -> None:
        """Everything before `end` is copied. Behind it are only zeros and what the kernel writes before its offset is
        0."""
        _give_back(self.descriptor, REWIND_BYTES, end - REWIND_BYTES)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        late = len(os.pread(self.descriptor, CHUNK_BYTES, end).rstrip(b"\0"))
        self._copy(end, end + late)
        _give_back(self.descriptor, end, WINDOW_BYTES - end)
        self._taken = 0

    def _copy(self, begin: int, end: int) -> None:
        """Append this part of the memory file to the console's file."""
        for at in range(begin, end, CHUNK_BYTES):
            self._write(os.pread(self.descriptor, min(CHUNK_BYTES, end - at), at))
        self._taken = end

    def close(self) -> None:
        self.take()
        self._is_open = False
        os.close(self.descriptor)
        os.close(self._file)

    def panic(self) -> str:
        """The message of the kernel's panic since its start, such as `Out of memory`; empty if it has not panicked."""
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
    """Free the memory of a part of a file (fallocate(2))."""
    ctypes.CDLL(None).fallocate(descriptor, KEEP_SIZE_PUNCH_HOLE, ctypes.c_long(at), ctypes.c_long(size))


_ENDED = re.compile(rb"Out of memory: Killed process (\d{1,10}) \(([ -~]{1,40}?)\) ")
"""A container that exceeds its own limit gives another message, `Memory cgroup out of memory`."""
ALL = 0.8
"""The touched part of its memory from which a kernel counts as full; the rest are reserves of its own."""
_SHARED = re.compile(r"^RssShmem:\s+(\d{1,12}) kB$", re.MULTILINE)


def memory_victims(said: bytes) -> tuple[str, ...]:
    """The processes that the kernel has killed, from its console's output, in order: `bash[812]`."""
    _, _, since = said.rpartition(STARTED)
    return tuple(f"{name.decode()}[{number.decode()}]" for number, name in _ENDED.findall(since))


def memory_lack_in_words(processes: tuple[str, ...]) -> str:
    """A clause about these processes; empty if there are none."""
    if not processes:
        return ""
    many = "1 process," if len(processes) == 1 else f"{len(processes)} processes, the last"
    return f"its memory is exhausted, and its kernel has killed {many} {processes[-1]}"


def memory_in_use(pid: int, memory_mb: int, proc: Path = Path("/proc")) -> str:
    """A clause if all of a kernel's memory is in use, by the shared memory of its process `pid`; otherwise, and if the
    process has ended, empty. A kernel that searches for free memory without end prints nothing.
    """
    try:
        found = _SHARED.search((proc / str(pid) / "status").read_text())
    except OSError:
        return ""
    is_full = found is not None and int(found[1]) >= ALL * memory_mb * 1024
    return f"all of its memory of {memory_mb} MB is in use" if is_full else ""

"""A kernel of a lab in a tracer's hands: it makes the system calls that the tracer chooses, and then goes on.

taken_kernel.py takes a kernel over from within, by /dev/mem, which only the image's own kernel has. A tracer
(ptrace(2)) gets the same from outside: the calls are made by the kernel's own process, with its descriptors, its
filter, its Landlock domain and its limits. So this works in both times and with every kernel. It needs root, or a
machine that lets a user trace processes of the same user.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

SEIZE, INTERRUPT, GETREGS, SETREGS, CONTINUE, STEP, DETACH = 0x4206, 0x4207, 12, 13, 7, 9, 17
GETSIGMASK, SETSIGMASK = 0x420A, 0x420B
WALL = 0x40000000
"""__WALL of waitpid(2)."""
REGISTERS = 27
RBX, RAX, RIP, ORIG_RAX = 5, 10, 16, 15
ARGUMENTS = (14, 13, 12, 7, 9, 8)
"""rdi, rsi, rdx, r10, r8, r9 in struct user_regs_struct."""
SYSCALL = b"\x0f\x05"
MMAP = 9
BOX_BYTES = 1 << 16
PATIENCE_S = 2.0
WAITS = -512
"""ERESTARTSYS: what an interrupted call has returned."""


class Ended(Exception):
    """The kernel's process has ended."""


class Traced:
    """A process that stands still, and makes single calls on demand."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._ptrace(SEIZE, 0, 0)
        self._ptrace(INTERRUPT, 0, 0)
        self._wait()
        self._registers = self._read_registers()
        self._mask = ctypes.c_uint64()
        self._ptrace(GETSIGMASK, 8, ctypes.byref(self._mask))
        all_but_trap = ctypes.c_uint64(~(1 << (signal.SIGTRAP - 1)) & (2**64 - 1))
        self._ptrace(SETSIGMASK, 8, ctypes.byref(all_but_trap))
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        self._instruction = self._find_instruction()
        self.box = self.call(MMAP, 0, BOX_BYTES, 3, 0x22, -1, 0)
        if self.box < 0:
            raise OSError(-self.box, "no memory for arguments")

    def release(self) -> None:
        """Let it go on where it was."""
        with contextlib.suppress(OSError):
            os.close(self._memory)
        with contextlib.suppress(OSError):
            self._ptrace(SETREGS, 0, self._registers)
            self._ptrace(SETSIGMASK, 8, ctypes.byref(self._mask))
            self._ptrace(DETACH, 0, 0)

    def put(self, at: int, content: bytes) -> int:
        """Write into the box; return the address."""
        os.pwrite(self._memory, content, self.box + at)
        return self.box + at

    def poke(self, address: int, content: bytes) -> None:
        os.pwrite(self._memory, content, address)

    def peek(self, address: int, size: int) -> bytes:
        return os.pread(self._memory, size, address)

    def call(self, number: int, *arguments: int) -> int:
        """What a call returns; an error is below 0, and WAITS means that it was still waiting. Raises Ended."""
        registers = (ctypes.c_uint64 * REGISTERS)(*self._registers)
        for place, value in zip(ARGUMENTS, (*arguments, *[0] * (6 - len(arguments))), strict=True):
            registers[place] = value & (2**64 - 1)
        registers[RAX], registers[ORIG_RAX], registers[RIP] = number, 2**64 - 1, self._instruction
        self._ptrace(SETREGS, 0, registers)
        self._ptrace(STEP, 0, 0)
        self._wait()
        return int(ctypes.c_int64(self._read_registers()[RAX]).value)

    def run(self, code: int, rbx: int, patience_s: float = 120.0) -> None:
        """Have it run code in its memory, up to an int3. Raises Ended, and TimeoutError."""
        registers = (ctypes.c_uint64 * REGISTERS)(*self._registers)
        registers[RBX], registers[ORIG_RAX], registers[RIP] = rbx, 2**64 - 1, code
        self._ptrace(SETREGS, 0, registers)
        self._ptrace(CONTINUE, 0, 0)
        if self._wait(patience_s):
            raise TimeoutError("the code has not come to its end")

    def _find_instruction(self) -> int:
        for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            if " r-xp " in line and "vsyscall" not in line:
                with contextlib.suppress(OSError):
                    at = os.pread(self._memory, min(end - begin, 4 << 20), begin).find(SYSCALL)
                    if at >= 0:
                        return begin + at
        raise OSError("the process has no instruction for a system call")

    def _read_registers(self) -> ctypes.Array[ctypes.c_uint64]:
        registers = (ctypes.c_uint64 * REGISTERS)()
        self._ptrace(GETREGS, 0, registers)
        return registers

    def _wait(self, patience_s: float = PATIENCE_S) -> bool:
        """Until it stands still; whether it had to be interrupted, which it is after so long."""
        soon, deadline, interrupted = time.monotonic() + 0.002, time.monotonic() + patience_s, False
        while True:
            pid, status = os.waitpid(self.pid, WALL | os.WNOHANG)
            if pid == 0:
                if time.monotonic() > deadline and not interrupted:
                    self._ptrace(INTERRUPT, 0, 0)
                    interrupted = True
                elif time.monotonic() > soon:
                    time.sleep(0.001)
                continue
            if not os.WIFSTOPPED(status):
                raise Ended
            return interrupted

    def _ptrace(self, request: int, address: int, data: object) -> None:
        given = ctypes.c_void_p(data) if isinstance(data, int) else data
        if self._libc.ptrace(request, self.pid, ctypes.c_void_p(address), given) < 0:
            number = ctypes.get_errno()
            if number == errno.ESRCH:
                raise Ended
            raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def traced(pid: int) -> Iterator[Traced]:
    held = Traced(pid)
    try:
        yield held
    finally:
        with contextlib.suppress(Ended):
            held.release()


def named(result: int) -> str:
    """`done`, `waits`, or the name of an error."""
    if result == WAITS:
        return "waits"
    return errno.errorcode.get(-result, str(result)) if -4096 < result < 0 else "done"


def descriptors(pid: int) -> dict[int, str]:
    """What each of a process's descriptors is open on, by the machine's own word."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found[int(each.name)] = str(each.readlink())
    return dict(sorted(found.items()))


SOCKETS = {
    "the clock's calendar": re.compile(rb"time-travel=ext:\d+:fd:(\d+)\0"),
    "the clock's console": re.compile(rb"virtio_uml\.device=fd:(\d+):3\0"),
    "the clock's port": re.compile(rb"virtio_uml\.device=fd:(\d+):1\0"),
    "the agent's line": re.compile(rb"\0ssl0=fd:(\d+)"),
    "a link": re.compile(rb"\0vec0:transport=fd,fd=(\d+)"),
}
"""Sockets that a kernel inherits, by its command line."""
PATHS = 0o10000000
"""O_PATH among the flags of fdinfo."""


def kinds(pid: int, host: str) -> dict[str, int]:
    """One descriptor of each kind that a kernel holds."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    sockets = {int(found[1]): name for name, shape in SOCKETS.items() if (found := shape.search(words))}
    held: dict[str, int] = {}
    for number, target in descriptors(pid).items():
        held.setdefault(_kind(pid, number, target, sockets, host), number)
    return held


def _kind(pid: int, number: int, target: str, sockets: dict[int, str], host: str) -> str:
    found = re.search(r"flags:\s+(\d+)", Path(f"/proc/{pid}/fdinfo/{number}").read_text())
    flags = int(found[1], 8) if found else 0
    place = target.removesuffix(" (deleted)")
    name = place.rpartition("/")[2]
    if number in sockets:
        kind = sockets[number]
    elif ":" in target and not target.startswith("/"):
        anonymous = target.removeprefix("anon_inode:").strip("[]")
        kind = {"pipe": "a pipe", "socket": "another socket"}.get(target.partition(":")[0], anonymous)
    elif flags & PATHS:
        kind = f"the directory of {'its memory' if place != target else _directory(place, host)}, as O_PATH"
    elif place.startswith("/memfd:"):
        kind = f"memfd {name.removeprefix('memfd:')}"
    elif place != target:
        kind = "its memory"
    else:
        kind = {"root.ext4": "the image", "disk.cow": "its disk", "linux": "linux"}.get(name, place)
    return kind


def _directory(place: str, host: str) -> str:
    if place.endswith(f"/shared/{host}"):
        return "what its guest may read"
    return "the lab" if "/labs/" in place else "the image"

"""What a lab's kernels have of this machine that none of the lab's parts decides: for the manifest of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from minigts.errors import EnvironmentLacks
from minigts.machine.proc import PROC, text_of
from minigts.machine.shell import run

CALLS, REGISTERS, ADDRESSES = "system calls are caught by", "a processor's registers", "addresses"
_LISTENER = "anon_inode:seccomp notify"
_NOT_RANDOM = 0x0040000
"""ADDR_NO_RANDOMIZE (personality(2))."""
_READ_REGISTERS = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
child = os.fork()
if child == 0:
    libc.ptrace(0, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
buffer = ctypes.create_string_buffer(1 << 16)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), len(buffer))
failed = libc.ptrace(0x4204, child, 0x202, vector)
os.kill(child, signal.SIGKILL)
print(0 if failed else vector[1])
"""
"""PTRACE_GETREGSET with NT_X86_XSTATE (ptrace(2)), as a kernel itself asks for the size of that area."""


def kernel_conditions(pids: Iterable[int], proc: Path = PROC) -> dict[str, str]:
    """How the kernels with these process ids catch their programs' system calls, the size of what this machine's
    processor keeps of a program's registers, and whether the addresses of the kernels are random. What this user may
    not read is left out."""
    found = {CALLS: _calls(pids, proc), REGISTERS: registers(), ADDRESSES: _addresses(pids, proc)}
    return {name: value for name, value in found.items() if value}


def registers() -> str:
    """The size of a program's floating-point and vector registers (the XSAVE area), `2440 bytes`; empty where programs
    may not be traced."""
    with suppress(EnvironmentLacks):
        size = run([sys.executable, "-ISc", _READ_REGISTERS], timeout_s=20, check=False).stdout.strip()
        return f"{size} bytes" if size.isdecimal() and int(size) else ""
    return ""


def _calls(pids: Iterable[int], proc: Path) -> str:
    """A kernel that listens to seccomp has a descriptor of that for each program of its guest."""
    seen = False
    for pid in pids:
        with suppress(OSError):
            for descriptor in (proc / str(pid) / "fd").iterdir():
                with suppress(FileNotFoundError):
                    if str(descriptor.readlink()) == _LISTENER:
                        return "seccomp"
            seen = True
    return "ptrace" if seen else ""


def _addresses(pids: Iterable[int], proc: Path) -> str:
    personalities = [text_of(proc / str(pid) / "personality").strip() for pid in pids]
    if not all(personalities) or not personalities:
        return ""
    return "not random" if all(int(each, 16) & _NOT_RANDOM for each in personalities) else "random"

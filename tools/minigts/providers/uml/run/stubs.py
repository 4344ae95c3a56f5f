"""The programs of a host as this machine sees them: each is a process, a stub, that the host's kernel has started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from minigts.foreign import Foreign
from minigts.machine.proc import PROC, parent, text_of, used_s, waited_s
from minigts.providers.base import WorkOfHost

PAGE_BYTES = 4096
PLATFORM = b"x86_64"
"""What a kernel writes below a program's arguments: AT_PLATFORM of getauxval(3)."""
_VARIABLE = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*=")
"""The begin of what an environment has (environ(7))."""


def work(kernels: Mapping[str, int], proc: Path = PROC) -> dict[str, WorkOfHost]:
    """What hosts have taken, by the process of each host's kernel, whose children its stubs are."""
    programs: dict[int, dict[int, float]] = {kernel: {} for kernel in kernels.values()}
    for directory in proc.glob("[0-9]*"):
        stub = int(directory.name)
        if (kernel := parent(stub, proc)) in programs:
            programs[kernel][stub] = used_s(stub, proc)
    return {
        host: WorkOfHost(
            used_s(kernel, proc) + sum(programs[kernel].values()),
            programs[kernel],
            sum(waited_s(each, proc) for each in (kernel, *programs[kernel])),
        )
        for host, kernel in kernels.items()
    }


def program_of(stub: int, proc: Path = PROC) -> Foreign:
    """The words with which a stub's program was started; empty if they are not to be had."""
    for line in reversed(text_of(proc / str(stub) / "maps").splitlines()):
        start, dash, end = line.split()[0].partition("-")
        page = _last_page(proc / str(stub) / "mem", int(start, 16), int(end, 16)) if dash else b""
        if page.endswith(bytes(8)) and (words := _strings(page)):
            return Foreign(" ".join(word.decode(errors="replace") for word in words))
    return Foreign()


def _last_page(memory: Path, start: int, end: int) -> bytes:
    try:
        descriptor = os.open(memory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, PAGE_BYTES, max(start, end - PAGE_BYTES))
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(descriptor)


def _strings(page: bytes) -> list[bytes]:
    """The arguments in the last page of a program's stack, which holds them, its environment and its file's name
    (fs/exec.c and fs/binfmt_elf.c of Linux); empty if this is no such page."""
    *words, _file = page.rstrip(b"\0").split(b"\0")
    begins = [number for number, word in enumerate(words) if word.endswith(PLATFORM)]
    if not begins:
        return []
    arguments = words[begins[-1] + 1 :]
    while len(arguments) > 1 and _VARIABLE.match(arguments[-1]):
        arguments.pop()
    return arguments

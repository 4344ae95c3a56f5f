"""What a host reads of its image is the image's own page, until it is written to; what it frees is the machine's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.machine import proc
from minigts.providers.base import OwnProcesses

pytestmark = pytest.mark.touched("provision/kernel")
LIMIT_S = 120.0
MIB = 1 << 20
LARGE = "/usr/bin/containerd"
"""A file of some fifty megabytes."""

WRITTEN_WHILE_READ = """
import mmap, os
name = "/etc/services"
reads = os.open(name, os.O_RDONLY)
seen = mmap.mmap(reads, 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED)
own = mmap.mmap(reads, 0, prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_PRIVATE)
before, first = seen[:], own[:5]
own[4096:4100] = b"mine"
assert seen[:] == before
writes = os.open(name, os.O_RDWR)
assert seen[:] == before and own[4096:4100] == b"mine"
os.pwrite(writes, b"HELLO", 0)
assert seen[:5] == own[:5] == b"HELLO" != first
shared = mmap.mmap(writes, 0)
shared[100:105] = b"WORLD"
assert os.pread(reads, 5, 100) == seen[100:105] == b"WORLD"
os.ftruncate(writes, 4099)
assert seen[4090:4100] == before[4090:4099] + b"\\0" and own[4096:4100] == b"mine"
os.fsync(writes)
assert before[5:100] == open(name, "rb").read()[5:100]
"""
FORKED = """
import os
mine = bytearray(b"a" * 300_000)
child = os.fork()
if child == 0:
    mine[::4096] = b"b" * len(mine[::4096])
    os._exit(mine.count(b"b") - len(mine[::4096]))
mine[1::4096] = b"c" * len(mine[1::4096])
assert os.waitpid(child, 0)[1] == 0
assert mine.count(b"b") == 0 and mine.count(b"c") == len(mine[1::4096])
"""


def on_host(lab: Lab, *argv: str) -> str:
    return user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S).stdout)


def lent_bytes(lab: Lab) -> int:
    """Of the image, in the memory of a host's kernel."""
    assert isinstance(lab.provider, OwnProcesses)
    maps = Path(f"/proc/{lab.provider.kernels()['ams']}/maps").read_text(encoding="utf-8")
    ranges = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .* \S*/root\.ext4$", maps, re.MULTILINE)
    return sum(int(end, 16) - int(begin, 16) for begin, end in ranges)


def own_bytes(lab: Lab) -> int:
    """Of the machine's memory, in the unlinked file that is a host's."""
    assert isinstance(lab.provider, OwnProcesses)
    return proc.shared_files_bytes([lab.provider.kernels()["ams"]])


def test_a_file_of_the_image_is_read_and_takes_no_memory(pair: Lab) -> None:
    size = int(on_host(pair, "stat", "--format=%s", LARGE))
    lent, own = lent_bytes(pair), own_bytes(pair)
    cached = on_host(pair, "sha256sum", LARGE)
    assert lent_bytes(pair) - lent > 0.9 * size
    assert own_bytes(pair) - own < 0.2 * size
    direct = on_host(pair, "sh", "-c", f"dd if={LARGE} bs=1M iflag=direct status=none | sha256sum")
    assert direct.split()[0] == cached.split()[0], "as it is without the cache"
    on_host(pair, "sh", "-c", "echo 3 >/proc/sys/vm/drop_caches")
    assert lent_bytes(pair) < lent + 0.1 * size
    assert on_host(pair, "sha256sum", LARGE) == cached


def test_who_has_a_file_of_the_image_mapped_sees_what_others_write(pair: Lab) -> None:
    on_host(pair, "python3", "-c", WRITTEN_WHILE_READ)


def test_what_a_program_has_freed_is_the_machines_again(pair: Lab) -> None:
    taken = "held = bytearray(200_000_000)"
    before = own_bytes(pair)
    on_host(pair, "python3", "-c", taken)
    on_host(pair, "sleep", "10")
    assert own_bytes(pair) - before < 40 * MIB


def test_a_process_and_what_it_forks_do_not_see_each_others_writes(pair: Lab) -> None:
    on_host(pair, "python3", "-c", FORKED)

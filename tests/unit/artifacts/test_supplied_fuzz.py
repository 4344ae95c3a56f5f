"""Broken archives: each gives the programs, or one refusal, in bounded time and memory. `--fuzz N` for more."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import resource
import struct
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_supplied_programs import PROGRAMS, archive, header

from minigts.artifacts import supplied
from minigts.errors import EnvironmentLacks

SHARE = 10
"""One archive for so many of `--fuzz`: it takes longer than a parser."""
SLOW_S, GREW_MIB = 2.0, 300
LIMITS = supplied.SuppliedLimits(unpacked_bytes=1 << 24, members=5000, program_bytes=1 << 20, programs_bytes=1 << 21)
LINKED = header("bin/weaver", tarfile.LNKTYPE, "busy") + archive({"busy": b"busy" * 500, "weaveutil": b"x" * 700})
KINDS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "tar": (archive(PROGRAMS), bytes),
    "tar.gz": (archive(PROGRAMS), gzip.compress),
    "tar.bz2": (archive(PROGRAMS), bz2.compress),
    "tar.xz": (archive(PROGRAMS), lzma.compress),
    "linked": (LINKED, gzip.compress),
    "pax": (archive({"long/" * 60 + name: content for name, content in PROGRAMS.items()}), bytes),
}
"""What is packed, and how. What is hurt before it is packed comes past the sums."""
TYPES = b"\0" + b"".join((tarfile.LNKTYPE, tarfile.SYMTYPE, b"5", b"6", b"7", b"L", b"K", b"S", b"x", b"g", b"M", b"V"))
NUMBERS = (b"77777777777\0", b"00000000000\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"-0000000001\0", b"          8\0")


def hurt(content: bytes, chance: random.Random) -> bytes:
    """One to four things done to it, of which those to headers keep their sum right."""
    for _ in range(chance.randint(1, 4)):
        a, b = sorted(chance.randint(0, len(content)) for _ in range(2))
        match chance.randrange(8):
            case 0:
                content = content[:a]
            case 1:
                content = content[:a] + content[b:]
            case 2:
                content = content[:b] + content[a:b] + content[b:]
            case 3:
                content = content[:a] + chance.randbytes(chance.randint(1, 600)) + content[a:]
            case 4:
                content = content[:a] + bytes([chance.randrange(256)]) + content[a + 1 :]
            case 5:
                content = content[:a] + bytes(min(b - a, 1024)) + content[min(b, a + 1024) :]
            case _:
                content = _hurt_header(content, a // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE, chance)
    return content


def _hurt_header(content: bytes, at: int, chance: random.Random) -> bytes:
    block = bytearray(content[at : at + tarfile.BLOCKSIZE].ljust(tarfile.BLOCKSIZE, b"\0"))
    place, new = chance.choice(
        (
            (124, chance.choice(NUMBERS)),
            (156, bytes([chance.choice(TYPES)])),
            (157, chance.choice((b"busy", b"bin/weaver", b"/etc/passwd", b"\xff" * 100)).ljust(100, b"\0")),
            (0, chance.choice((b"weaver", b"x.tar", b"\xff" * 100)).ljust(100, b"\0")),
            (257, chance.choice((b"ustar\x0000", b"ustar  \0", b"\0" * 8))),
            (482, chance.randbytes(30)),
        )
    )
    block[place : place + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = struct.pack("8s", b"%06o\0 " % sum(block))
    return content[:at] + bytes(block) + content[at + tarfile.BLOCKSIZE :]


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_archive_gives_its_programs_or_one_refusal(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MINIGTS_WEAVE", str(tmp_path / "place"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content, pack = KINDS[kind]
    for number in range(max(1, request.config.getoption("--fuzz") // SHARE // len(KINDS))):
        chance = random.Random(f"{kind} {number}")
        packed_first = chance.random() < 0.4
        broken = hurt(pack(content), chance) if packed_first else pack(hurt(content, chance))
        (tmp_path / "place").write_bytes(broken)
        started = time.thread_time()
        try:
            found = supplied.take("weave", tuple(PROGRAMS), LIMITS)
        except EnvironmentLacks as error:
            assert str(error).startswith(f"{tmp_path}/place: "), number
            assert str(error).count("\n") == 1, number
        else:
            programs = {path.name: path.read_bytes() for path in found.iterdir()}
            assert set(programs) == set(PROGRAMS), number
            assert programs == PROGRAMS or not packed_first or kind not in ("tar.gz", "tar.bz2", "tar.xz"), number
        assert time.thread_time() - started < SLOW_S, number
        left = [path.name for path in (tmp_path / "cache" / "programs").glob("taking-*")]
        assert left == [], number
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GREW_MIB << 10

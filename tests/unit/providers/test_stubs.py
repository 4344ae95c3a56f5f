"""What this machine sees of hosts' programs: how much each has worked, and how it was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.providers.uml.run import stubs

ARGUMENTS = b"python3\0-c\0import os\ns=1"


def process(proc: Path, pid: int, parent: int, ticks: int) -> Path:
    place = proc / str(pid)
    place.mkdir()
    (place / "stat").write_text(f"{pid} (a) b) S {parent} " + "0 " * 9 + f"{ticks} {ticks} 7 7 0 0")
    return place


def test_the_work_of_hosts_is_that_of_their_kernels_and_stubs(tmp_path: Path) -> None:
    for pid, parent, ticks in ((10, 1, 100), (11, 10, 50), (12, 10, 25), (20, 1, 1), (21, 20, 3), (30, 1, 999)):
        process(tmp_path, pid, parent, ticks)
    found = stubs.work({"a": 10, "b": 20, "gone": 40}, tmp_path)
    assert found["a"].programs == {11: 1.14, 12: 0.64}
    assert found["a"].seconds == pytest.approx(2.14 + 1.14 + 0.64)
    assert found["b"].programs == {21: 0.2}
    assert (found["gone"].seconds, found["gone"].programs) == (0, {})


def test_a_program_is_named_by_the_last_page_of_its_stack(tmp_path: Path) -> None:
    place = process(tmp_path, 11, 10, 1)
    (place / "maps").write_text(
        "00001000-00002000 rwxs 0 0 0 /dev/shm/x\n00003000-00005000 rwxs 0 0 0 /dev/shm/x\n"
        "00006000-00007000 r-xs 0 0 0 /dev/shm/x\nffffffffff600000-ffffffffff601000 --xp 0 0 0 [vsyscall]\n"
    )
    words = b"\x17\0\0\x99x86_64\0" + ARGUMENTS + b"\0HOME=/root\0LANG=C.UTF-8\0/usr/bin/python3\0" + bytes(8)
    (place / "mem").write_bytes((bytes(0x5000 - len(words)) + words).ljust(0x7000, b"\0"))
    assert stubs.program_of(11, tmp_path) == "python3 -c import os\ns=1"


@pytest.mark.parametrize("page", [b"", b"x86_64", b"no such words" + bytes(8), b"ax86_64" + bytes(9)])
def test_a_page_that_is_no_stack_names_nothing(page: bytes, tmp_path: Path) -> None:
    place = process(tmp_path, 11, 10, 1)
    (place / "maps").write_text("00000000-00001000 rwxs 0 0 0 /dev/shm/x\nnonsense\n")
    (place / "mem").write_bytes(page.rjust(4096, b"\0"))
    assert stubs.program_of(11, tmp_path) == ""
    assert stubs.program_of(12, tmp_path) == ""

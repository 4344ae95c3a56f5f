"""What a manifest says of the machine: read of processes that run, and of /proc's files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minigts.providers.uml import conditions
from minigts.providers.uml.conditions import ADDRESSES, CALLS, REGISTERS

LEAST_BYTES = 576
"""The legacy area and the header of XSAVE (Intel's manual, volume 1, section 13.4)."""


@contextmanager
def sleeper(*words: str) -> Iterator[int]:
    """The process id of a program that sleeps, started by these words."""
    started = subprocess.Popen([*words, "sleep", "60"])
    try:
        yield started.pid
    finally:
        started.kill()
        started.wait()


def test_the_processors_registers_are_at_least_what_each_x86_64_has() -> None:
    told = conditions.registers()
    if not told:
        pytest.skip("programs cannot be traced here")
    assert int(told.removesuffix(" bytes")) >= LEAST_BYTES


@pytest.mark.parametrize(("words", "told"), [(["setarch", "-R"], "not random"), ([], "random")])
def test_addresses_are_those_of_the_kernels(words: list[str], told: str) -> None:
    with sleeper(*words) as pid:
        until_named(pid, "sleep")
        assert conditions.kernel_conditions([pid])[ADDRESSES] == told


def until_named(pid: int, name: str) -> None:
    """Until the words before it have become this program."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != name:
        pass


def test_one_kernel_with_random_addresses_is_told() -> None:
    with sleeper("setarch", "-R") as one, sleeper() as other:
        until_named(one, "sleep")
        assert conditions.kernel_conditions([one, other])[ADDRESSES] == "random"


def test_a_listener_of_seccomp_is_found_among_descriptors(tmp_path: Path) -> None:
    descriptors = tmp_path / "7" / "fd"
    descriptors.mkdir(parents=True)
    (descriptors / "0").symlink_to("/dev/null")
    assert conditions.kernel_conditions([7], tmp_path)[CALLS] == "ptrace"
    (descriptors / "1").symlink_to("anon_inode:seccomp notify")
    assert conditions.kernel_conditions([7], tmp_path)[CALLS] == "seccomp"


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    assert conditions.kernel_conditions([7], tmp_path).keys() <= {REGISTERS}
    assert conditions.kernel_conditions([], tmp_path).keys() <= {REGISTERS}

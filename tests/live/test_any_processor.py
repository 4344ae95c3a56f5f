"""In virtual time a host's kernel tells nothing of this machine's processor, and depends on nothing of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from live.conftest import brought_up
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.uml, pytest.mark.virtual]

PAIR = """name: alike
hosts: {a: , b: }
links: [{ends: [a, b], rtt: 4ms, rate: 20mbit}]
"""
AUXV = r"""
import struct
words = open("/proc/self/auxv", "rb").read()
for kind, value in struct.iter_unpack("<2Q", words):
    if kind in (15, 16, 26, 29, 30, 51):  # AT_PLATFORM, AT_HWCAP, AT_HWCAP2, 3, 4, AT_MINSIGSTKSZ
        print(kind, hex(value) if kind != 15 else "named")
"""
FRAMES = r"""
import ctypes, signal
touched = []
def note(number, frame):
    touched.append(number)
signal.signal(signal.SIGUSR1, note)
for _ in range(1000):
    signal.raise_signal(signal.SIGUSR1)
values = [i / 7 for i in range(1000)]
for _ in range(100):
    signal.raise_signal(signal.SIGUSR1)
    values = [value * 1.0000001 for value in values]
print(len(touched), round(sum(values), 6))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    yield from brought_up(parse(PAIR, "alike.yaml", time="virtual"), "alike", tmp_path_factory)


def said(lab: Lab, *argv: str) -> str:
    return user_text(lab.provider.run("a", argv, timeout_s=60).stdout)


def test_a_host_is_told_of_one_processor(lab: Lab) -> None:
    lines = (line.split(":", 1) for line in said(lab, "cat", "/proc/cpuinfo").splitlines() if ":" in line)
    told = {name.strip(): value.strip() for name, value in lines}
    assert told["bogomips"] == "0.00"
    assert told["host"] == "one for all, in virtual time"
    assert "avx" not in told["flags"].split()
    assert {"fpu", "sse2", "lm"} <= set(told["flags"].split())
    assert said(lab, "uname", "-m") == "x86_64\n"


def test_its_programs_are_told_of_the_same(lab: Lab) -> None:
    assert said(lab, "python3", "-c", AUXV).split("\n")[:-1] == ["16 0x7808171", "15 named"]


def test_descriptors_on_the_command_line_are_numbered_from_3_on(lab: Lab) -> None:
    """They do not follow what the supervisor has open: the second host's are those of the first."""
    lines = [user_text(lab.provider.run(host, ["cat", "/proc/cmdline"], timeout_s=60).stdout) for host in ("a", "b")]
    assert "time-travel=ext:0:fd:3 " in lines[0]
    alike = [line.replace("ext:1:", "ext:0:").replace("mac=", "") for line in lines]
    different = [(one, other) for one, other in zip(alike[0].split(), alike[1].split(), strict=True) if one != other]
    assert different == [(one, one.replace("/hosts/a/", "/hosts/b/")) for one, _ in different]


def test_floating_point_survives_signals_and_forks(lab: Lab) -> None:
    """The area has moved out of the task, and what a signal's frame keeps of it is cut."""
    expected = subprocess.run(["python3", "-c", FRAMES], capture_output=True, text=True, check=True).stdout
    assert said(lab, "python3", "-c", FRAMES) == expected
    powers = "awk 'BEGIN { x = 1; for (i = 0; i < 100000; i++) x *= 1.00001; print x }'"
    assert set(said(lab, "bash", "-c", f"for each in 1 2 3 4 5; do {powers} & done; wait").split()) == {"2.71827"}

"""The program that watches how long a kernel asks for a neighbour, and remembers a path's MTU."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from host_programs import loaded, program

PROGRAM = program("neighbours")
NEIGHBOURS = loaded("neighbours")
ETHERNET = bytes.fromhex("ffffffffffff026d67000000")


def arp(operation: int, target: str) -> bytes:
    head = bytes.fromhex("0001080006 04".replace(" ", "")) + operation.to_bytes(2, "big")
    return ETHERNET + b"\x08\x06" + head + bytes(6) + bytes(4) + bytes(6) + socket.inet_aton(target)


def solicitation(kind: int, target: str) -> bytes:
    ipv6 = b"\x60" + bytes(5) + b"\x3a\xff" + bytes(32)
    return ETHERNET + b"\x86\xdd" + ipv6 + bytes([kind, 0, 0, 0]) + bytes(4) + socket.inet_pton(socket.AF_INET6, target)


def test_a_request_is_for_one_neighbour() -> None:
    assert NEIGHBOURS.is_request(arp(1, "10.20.0.200"), "10.20.0.200")
    assert not NEIGHBOURS.is_request(arp(1, "10.20.0.2"), "10.20.0.200")
    assert not NEIGHBOURS.is_request(arp(2, "10.20.0.200"), "10.20.0.200")  # an answer
    assert NEIGHBOURS.is_request(solicitation(135, "fd00::200"), "fd00::200")
    assert not NEIGHBOURS.is_request(solicitation(135, "fd00::2"), "fd00::200")
    assert not NEIGHBOURS.is_request(solicitation(136, "fd00::200"), "fd00::200")
    assert not NEIGHBOURS.is_request(ETHERNET + b"\x08\x00" + bytes(60), "10.20.0.200")


def test_a_change_is_told_with_its_moment() -> None:
    values = iter([1500, 1500, 1400])
    moment, found = NEIGHBOURS.wait_while(lambda: next(values), 1500, 0.001, 10)
    assert found == 1400 and moment <= NEIGHBOURS.now_ms()
    with pytest.raises(SystemExit, match="still 1500"):
        NEIGHBOURS.wait_while(lambda: 1500, 1500, 0.001, 0.01)


@pytest.mark.parametrize("words", [[], ["resolve"], ["forget", "10.0.0.1"]])
def test_other_words_are_told_the_right_ones(words: list[str]) -> None:
    done = subprocess.run((sys.executable, PROGRAM, *words), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "neighbours.py resolve ADDRESS INTERFACE" in done.stderr

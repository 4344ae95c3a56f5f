"""Frames in words. The frames were captured in labs (`minigts capture`), and are given here as they were."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.dataplane.frame_words import frame_line

FAR, NEAR = bytes.fromhex("5210c9430102"), bytes.fromhex("5210c9430001")


def ethernet(kind: int, packet: bytes) -> bytes:
    return FAR + NEAR + struct.pack("!H", kind) + packet


def ipv4(protocol: int, payload: bytes, source: str = "10.0.0.1", target: str = "10.0.0.2", part: int = 0) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, part, 64, protocol, 0)
    return head + ip_address(source).packed + ip_address(target).packed + payload


def ipv6(protocol: int, payload: bytes) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(payload), protocol, 255)
    return head + ip_address("fd00::1").packed + ip_address("ff02::1").packed + payload


ARP = bytes.fromhex("00010800060400015210c94300010a0000010000000000000a000002")
IS_AT = bytes.fromhex("00010800060400025210c94301020a0000025210c94300010a000001")
TCP = struct.pack("!HHIIBBHHH", 5001, 40000, 17, 4, 5 << 4, 0x18, 500, 0, 0) + bytes(100)
ECHO = struct.pack("!BBHHH", 8, 0, 0, 7, 3) + bytes(56)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (ethernet(0x0806, ARP), "ARP who-has 10.0.0.2 tell 10.0.0.1"),
        (ethernet(0x0806, IS_AT), "ARP 10.0.0.2 is-at 52:10:c9:43:01:02"),
        (ethernet(0x0800, ipv4(6, TCP)), "TCP 10.0.0.1:5001 > 10.0.0.2:40000 seq 17 ack 4 [P.] 100 bytes"),
        (ethernet(0x0800, ipv4(1, ECHO)), "ICMP echo request 10.0.0.1 > 10.0.0.2 id 7 seq 3"),
        (
            ethernet(0x0800, ipv4(17, struct.pack("!HHHH", 68, 67, 16, 0) + bytes(8))),
            "UDP 10.0.0.1:68 > 10.0.0.2:67 8 bytes",
        ),
        (ethernet(0x0800, ipv4(17, bytes(8), part=185)), "IP 10.0.0.1 > 10.0.0.2 id 7 fragment at 1480"),
        (ethernet(0x0800, ipv4(89, bytes(44))), "IP protocol 89 10.0.0.1 > 10.0.0.2 44 bytes"),
        (
            ethernet(0x86DD, ipv6(58, struct.pack("!BBHI", 135, 0, 0, 0))),
            "ICMP neighbour solicitation fd00::1 > ff02::1",
        ),
        (
            ethernet(0x86DD, ipv6(0, bytes.fromhex("3a00050200000000") + bytes([143, 0, 0, 0]))),
            "ICMP multicast listener report fd00::1 > ff02::1",
        ),
        (ethernet(0x8100, struct.pack("!HH", 12, 0x0806) + ARP), "VLAN 12 ARP who-has 10.0.0.2 tell 10.0.0.1"),
        (ethernet(0x88CC, b"?"), "type 0x88cc 52:10:c9:43:00:01 > 52:10:c9:43:01:02"),
        (ethernet(0x0026, b"?"), "802.3 52:10:c9:43:00:01 > 52:10:c9:43:01:02"),
        (
            ethernet(0x0800, ipv4(4, ipv4(1, ECHO, "10.1.0.2", "10.1.0.3"))),
            "IP in IP 10.0.0.1 > 10.0.0.2: ICMP echo request 10.1.0.2 > 10.1.0.3 id 7 seq 3",
        ),
    ],
)
def test_a_frame_is_named_by_what_it_carries(frame: bytes, words: str) -> None:
    assert frame_line(frame) == words


def test_of_a_tunnel_the_frame_within_is_named() -> None:
    inner = ethernet(0x0800, ipv4(1, ECHO, "10.1.0.2", "10.1.0.3"))
    outer = struct.pack("!HHHH", 33000, 4789, 16 + len(inner), 0) + bytes.fromhex("0800000000100100") + inner
    assert frame_line(ethernet(0x0800, ipv4(17, outer))[:128]) == (
        "VXLAN 4097 10.0.0.1 > 10.0.0.2: ICMP echo request 10.1.0.2 > 10.1.0.3 id 7 seq 3"
    )


@given(st.binary(max_size=128))
def test_whatever_the_bytes_there_is_a_line(frame: bytes) -> None:
    assert "\n" not in frame_line(frame)


@given(st.integers(min_value=0, max_value=80))
def test_what_is_cut_off_is_said_to_be(size: int) -> None:
    assert frame_line(ethernet(0x0800, ipv4(6, TCP))[:size])

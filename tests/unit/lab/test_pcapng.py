"""Captures of several interfaces become one file, in the order of time."""

from __future__ import annotations

import struct

import pytest

from minigts.lab.pcapng import CapturedFrame, Merged, Pcap, whole

ETHERNET = 1
HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, ETHERNET)


def frame(time_ns: int, kept: bytes) -> bytes:
    return struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(kept), len(kept) + 100) + kept


def blocks(pcapng: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", pcapng, at + length - 4) == (length,)
        found.append((kind, pcapng[at + 8 : at + length - 4]))
        at += length
    return found


def frames(pcapng: bytes) -> list[tuple[int, int, bytes]]:
    """Interface, time, content."""
    found = []
    for kind, body in blocks(pcapng):
        if kind == 6:
            interface, high, low, kept_bytes, length_bytes = struct.unpack_from("<IIIII", body)
            assert length_bytes == kept_bytes + 100
            found.append((interface, high << 32 | low, body[20 : 20 + kept_bytes]))
    return found


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_pcap_is_read_in_pieces_of_any_size(size: int) -> None:
    pcap, content = Pcap(0), HEADER + frame(1_500_000_007, b"first") + frame(2_000_000_000, b"")
    seen = [each for at in range(0, len(content), size) for each in pcap.feed(content[at : at + size])]
    assert [(each.time_ns, each.kept) for each in seen] == [(1_500_000_007, b"first"), (2_000_000_000, b"")]
    assert pcap.link_type == ETHERNET


def test_what_is_no_pcap_with_nanoseconds_is_refused() -> None:
    with pytest.raises(ValueError, match="nanoseconds"):
        list(Pcap(0).feed(b"\xd4\xc3\xb2\xa1" + HEADER[4:]))


def test_frames_of_both_ends_come_in_the_order_of_their_times() -> None:
    merged = Merged(["ams eth1", "bra eth1"])
    merged.feed(0, HEADER + frame(10, b"a") + frame(40, b"d"))
    assert merged.release() == b""
    merged.feed(1, HEADER + frame(20, b"bb") + frame(1 << 33, b"ccc"))
    everything = merged.release() + merged.release() + merged.release(everything=True)
    assert frames(everything) == [(0, 10, b"a"), (1, 20, b"bb"), (0, 40, b"d"), (1, 1 << 33, b"ccc")]
    assert [kind for kind, _ in blocks(everything)] == [0x0A0D0D0A, 1, 1, 6, 6, 6, 6]
    assert b"bra eth1" in blocks(everything)[2][1]


def test_a_frame_waits_for_earlier_ones_of_the_other_end() -> None:
    merged = Merged(["ams eth1", "bra eth1"])
    merged.feed(0, HEADER + frame(30, b"late"))
    merged.feed(1, HEADER)
    written = merged.release()
    merged.feed(1, frame(20, b"early"))
    written += merged.release()
    assert frames(written) == [(1, 20, b"early"), (0, 30, b"late")]


def test_a_capture_without_a_frame_is_a_file_that_says_its_interfaces() -> None:
    merged = Merged(["ams eth1", "bra eth1"])
    merged.feed(0, HEADER)
    merged.feed(1, HEADER)
    assert [kind for kind, _ in blocks(merged.release(everything=True))] == [0x0A0D0D0A, 1, 1]


def test_frames_that_are_all_there_become_a_file() -> None:
    content = [CapturedFrame(10, 1, 103, b"abc"), CapturedFrame(1 << 33, 0, 100, b"")]
    written = whole(["ams eth1", "bra eth1"], content)
    assert frames(written) == [(1, 10, b"abc"), (0, 1 << 33, b"")]
    interfaces = [body for kind, body in blocks(written) if kind == 1]
    assert [struct.unpack_from("<H", body) for body in interfaces] == [(ETHERNET,)] * 2
    assert b"bra eth1" in interfaces[1]

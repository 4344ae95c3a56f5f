"""What tcpdump writes beside the frames, and what follows from it."""

from __future__ import annotations

import pytest

from minigts.lab import capture
from minigts.lab.capture import CapturePoint, Remarks

BEGUN = b"tcpdump: listening on eth1, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"
COUNTED = b"1204 packets captured\n1210 packets received by filter\n6 packets dropped by kernel\n"
"""What tcpdump 4.99.5 writes."""


def remarks(text: bytes, size: int = 7) -> Remarks:
    """As they come, in pieces."""
    made = Remarks()
    for at in range(0, len(text), size):
        made.feed(text[at : at + size])
    return made


def test_it_has_begun_when_tcpdump_listens_and_not_before() -> None:
    assert not remarks(BEGUN[:18]).has_begun
    assert remarks(BEGUN).has_begun
    assert remarks(BEGUN + b"x" * 2 * capture.LONGEST_REMARKS, 4096).has_begun


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (BEGUN + COUNTED, (1204, 6)),
        (BEGUN + b"1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n", (1, 0)),
        (BEGUN, None),
        (b"", None),
        (b"12 packets captured of old\n", None),
    ],
)
def test_the_counts_are_those_at_its_end(text: bytes, counts: tuple[int, int] | None) -> None:
    assert remarks(text).counts() == counts


def test_the_last_line_says_what_was_wrong() -> None:
    wrong = b"tcpdump: can't parse filter expression: syntax error\n"
    assert remarks(BEGUN + wrong).last_line == wrong.decode().strip()
    assert remarks(b"").last_line == ""


def test_a_filter_is_no_option_of_tcpdump() -> None:
    argv = capture.command(CapturePoint("ams", "eth1"), ["-w", "/root/x"], frames=3, seconds=None, text=False)
    assert argv[-3:] == ["--", "-w", "/root/x"]

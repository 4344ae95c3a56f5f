"""What TCP's windows leave of a link's rate."""

from __future__ import annotations

import pytest

from minigts.fidelity import windows


@pytest.mark.parametrize(
    ("receive", "send", "rtt_ms", "seen_mbit"),
    [
        (16_777_216, 16_777_216, 100.0, 558.0),  # 1 Gbit/s; seen with iperf3 in virtual time
        (16_777_216, 16_777_216, 20.0, 3983.0),  # 10 Gbit/s
    ],
)
def test_what_was_seen_lies_between_the_two_windows(receive: int, send: int, rtt_ms: float, seen_mbit: float) -> None:
    low, high = windows.window(receive, send).mbit(rtt_ms)
    assert low * 0.98 <= seen_mbit <= high * 1.02


def test_the_smaller_of_both_buffers_decides() -> None:
    assert windows.window(6_291_456, 1_000_000).most == 1_000_000
    assert windows.window(1_000_000, 4_194_304).most == pytest.approx(1_000_000 * 151 / 256)


def test_it_is_said_in_a_clause_with_the_settings_that_would_have_to_be_others() -> None:
    said = windows.window(16_777_216, 16_777_216).in_words(100)
    assert "tcp_rmem up to 16777216" in said
    assert "561 to 791.7 Mbit/s over 100 ms" in said

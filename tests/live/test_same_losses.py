"""A lossy link loses the same packets in every lab of the same file, and others with another seed."""

from __future__ import annotations

import re

import pytest

from live.conftest import MakeLab
from minigts.foreign import user_text
from minigts.lab import Lab

pytestmark = pytest.mark.virtual
LOSSY = "name: lossy\nseed: {seed}\npair: {{link: {{rtt: 4ms, loss: 10%}}}}\n"
PINGS = 300


def lost(lab: Lab) -> set[int]:
    """Which of the first pings after `up` have no answer."""
    address = lab.plan.far_address(lab.plan.links[0])
    argv = ["ping", "-n", "-i", "0.004", "-W", "2", "-c", str(PINGS), address]
    said = user_text(lab.provider.run("h1", argv, timeout_s=60, check=False).stdout)
    return set(range(1, PINGS + 1)) - {int(number) for number in re.findall(r"icmp_seq=(\d+)", said)}


def test_two_labs_of_the_same_file_lose_the_same_packets(make_lab: MakeLab) -> None:
    first, second = (lost(make_lab(LOSSY.format(seed=7), name)) for name in ("first", "second"))
    assert 30 < len(first) < 90  # 19 % of 300, there and back
    assert first == second
    assert lost(make_lab(LOSSY.format(seed=8), "other")) != first

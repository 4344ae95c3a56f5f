"""The emulation in virtual time, judged by tools that nobody here wrote: Debian's ping and netperf over chain6.

The idea is mahimahi's (delays in a row: expect their sum) and Mininet's (test_hifi.py, ±20 %); here it is what the
tools' own digits leave: both print microseconds, and netperf cuts off what is below. netperf's first byte follows its
own acknowledgement of a TCP segment, on every link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import pytest

from live.exact import EXACT_MS
from minigts.dataplane.round_trip import echo_ms, frames_ns
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.tools import ping

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]
PAIRS = tuple(combinations(("ams", "bra", "lju", "mil", "ham", "lon"), 2))
PRINTED_MS = 0.001
UDP_BYTE_FRAME_BYTES, TCP_ACK_FRAME_BYTES = 43, 66
"""Ethernet 14, IPv4 20; UDP 8 and the byte, or TCP 20 and its timestamps 12."""
TIMEOUT_S = 60
Range = tuple[float, float]
"""The shortest and the longest, in ms."""


def ping_ms(lab: Lab, source: Endpoint, target: Endpoint) -> Range:
    """Of 40 echo requests, as ping prints them."""
    argv = [*source.prefix, "ping", "-n", "-i", "0.2", "-c", "40", target.address]
    result = lab.provider.run(source.host, argv, timeout_s=TIMEOUT_S)
    said = ping.parse(user_text(result.stdout), user_text(result.stderr))
    return said.min_ms, said.max_ms


def netperf_ms(lab: Lab, source: Endpoint, target: Endpoint) -> Range:
    """Of eight exchanges of one byte for one byte."""
    test = ("netperf", "-4", "-H", target.address, "-t", "UDP_RR", "-l", "-8", "-P", "0", "--")
    argv = [*source.prefix, *test, "-o", "MIN_LATENCY,MAX_LATENCY"]
    least, most = user_text(lab.provider.run(source.host, argv, timeout_s=TIMEOUT_S).stdout).strip().split(",")
    return int(least) / 1000, int(most) / 1000


@pytest.mark.parametrize("endpoints", ["none"], indirect=True)
@pytest.mark.parametrize("measure", [ping_ms, netperf_ms], ids=["ping", "netperf"])
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_delays_in_a_row_add_up(
    lab: Lab,
    endpoints: Mapping[str, Endpoint],
    source: str,
    target: str,
    measure: Callable[[Lab, Endpoint, Endpoint], Range],
) -> None:
    path = lab.plan.path(source, target)
    expected_ms, queued_ms = echo_ms(lab.plan, path), 0.0
    if measure is netperf_ms:
        expected_ms = frames_ns(lab.plan, path, UDP_BYTE_FRAME_BYTES) / 1e6
        queued_ms = (frames_ns(lab.plan, path, TCP_ACK_FRAME_BYTES) / 1e6 - path.rtt_ms) / 2
    least_ms, most_ms = measure(lab, endpoints[source], endpoints[target])
    off_ms = EXACT_MS + PRINTED_MS
    assert abs(least_ms - expected_ms) <= off_ms, f"{least_ms} ms instead of {expected_ms}"
    assert expected_ms - off_ms <= most_ms <= expected_ms + queued_ms + off_ms, f"{most_ms} ms, not {expected_ms}"

"""The emulation's own proof, in virtual time: every round trip is the sum of its segments and the frames' own time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise

import pytest

from live.exact import EXACT_MS
from minigts import overlays
from minigts.dataplane.round_trip import echo_ms
from minigts.lab import Lab, calibration
from minigts.overlays import Endpoint
from minigts.overlays.catalogue import HEADER_BYTES

pytestmark = pytest.mark.virtual
HOSTS = ("ams", "bra", "lju", "mil", "ham", "lon")
PAIRS = tuple(combinations(HOSTS, 2))
PROBES = 60
PING_FRAME_BYTES = 98
"""Ethernet 14, IPv4 20, ICMP 8, and 56 that ping(8) sends."""
FULL_FRAME_BYTES = 1514
MOST_WAIT = 0.1
"""The part of the round trips that may wait on a wire, each for no more than a full frame, behind what an overlay sends
for itself."""


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_round_trip_is_the_sum_of_its_segments_and_its_frames_own_time(
    lab: Lab, endpoints: Mapping[str, Endpoint], source: str, target: str
) -> None:
    way = HOSTS[HOSTS.index(source) : HOSTS.index(target) + 1]
    joined = overlays.joined(lab)
    assert joined is not None
    added_bytes = HEADER_BYTES[overlays.find(joined.name).data_path.encapsulation]
    address, inside = endpoints[target].address, endpoints[source].network
    calibration.probe(lab.provider, source, address, count=1, prefix=inside)  # who is where comes with a first packet

    measured = calibration.probe(lab.provider, source, address, count=PROBES, prefix=inside)

    segments = [lab.plan.path(*segment) for segment in pairwise(way)]

    def there_and_back_ms(frame_bytes: int) -> float:
        return sum(2 * 8 * frame_bytes / ((each.rate_mbit or 0) * 1e3) for each in segments)

    expected_ms = sum(each.rtt_ms for each in segments) + there_and_back_ms(PING_FRAME_BYTES + added_bytes)
    assert echo_ms(lab.plan, lab.plan.path(source, target), added_bytes=added_bytes) == pytest.approx(expected_ms)
    assert len(measured.rtts_ms) == PROBES
    assert min(measured.rtts_ms) == pytest.approx(expected_ms, abs=EXACT_MS)
    waited_ms = [rtt_ms - expected_ms for rtt_ms in measured.rtts_ms if rtt_ms - expected_ms > EXACT_MS]
    if joined.name == "none":
        assert waited_ms == []
    else:  # an overlay's engines talk to each other over the same links
        assert len(waited_ms) <= MOST_WAIT * PROBES
        assert max(waited_ms, default=0) <= there_and_back_ms(FULL_FRAME_BYTES)

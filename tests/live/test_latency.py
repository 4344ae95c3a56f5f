"""The emulation's own proof: a path's round trip is the sum of its segments', over the underlay and an overlay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, pairwise

import pytest

from live.patience import ends_ms, patiently
from minigts.judge.tolerances import round_trip
from minigts.lab import Lab, calibration
from minigts.overlays import Endpoint

pytestmark = pytest.mark.uml
HOSTS = ("ams", "bra", "lju", "mil", "ham", "lon")
PAIRS = tuple(combinations(HOSTS, 2))
PROBES = 60
Seen = dict[tuple[str, str], list[float]]
"""By pair of hosts the medians in ms."""


def median_rtt_ms(lab: Lab, endpoints: Mapping[str, Endpoint], source: str, target: str) -> float:
    """Of an overlay's endpoints; the probe is the host's own program, in the container's network."""
    address, inside = endpoints[target].address, endpoints[source].network
    measured = calibration.probe(lab.provider, source, address, count=PROBES, prefix=inside)
    assert len(measured.rtts_ms) >= PROBES - 2, f"{source} to {target} loses packets: {measured}"
    return measured.median_ms


@pytest.fixture(scope="session")
def seen(endpoints: Mapping[str, Endpoint]) -> Seen:
    """What has been measured over these endpoints: a segment is on the way of several pairs."""
    return {}


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_a_paths_latency_is_the_sum_of_its_segments(
    lab: Lab, endpoints: Mapping[str, Endpoint], seen: Seen, source: str, target: str
) -> None:
    way = HOSTS[HOSTS.index(source) : HOSTS.index(target) + 1]
    segments = tuple(pairwise(way))
    declared_ms = lab.plan.path(source, target).rtt_ms
    assert math.isclose(declared_ms, sum(lab.plan.path(*segment).rtt_ms for segment in segments))
    tolerance = round_trip(lab.plan, lab.plan.path(source, target))
    allowed_ms = tolerance.of(declared_ms) + ends_ms(lab)
    apart_ms = tolerance.of(declared_ms) + ends_ms(lab) * (len(segments) - 1)
    for attempt in patiently(lab, seen.clear):
        for pair in {(source, target), *segments}:
            if attempt or pair not in seen:
                seen.setdefault(pair, []).append(median_rtt_ms(lab, endpoints, *pair))
        lowest_ms = {pair: min(rtts_ms) for pair, rtts_ms in seen.items()}
        path_ms, sum_ms = lowest_ms[source, target], sum(lowest_ms[segment] for segment in segments)
        if abs(path_ms - declared_ms) <= allowed_ms and abs(path_ms - sum_ms) <= apart_ms:
            return
    pytest.fail(
        f"path {path_ms:.3f}, sum of segments {sum_ms:.3f}, declared {declared_ms:.3f}, allowed "
        f"{allowed_ms:.3f} and {apart_ms:.3f} ms; own latency taken off {lab.record.emulator_overhead_ms} ms; {seen}"
    )

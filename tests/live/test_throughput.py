"""Links carry what they declare, over one hop and over five; and lose what they declare to lose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from minigts import overlays
from minigts.experiments.commands import underlay_mtu
from minigts.foreign import user_text
from minigts.lab import Lab, calibration
from minigts.overlays import Endpoint
from minigts.tools import iperf3_tcp, iperf3_udp
from minigts.tools.base import Measured, PathUnderTest
from minigts.tools.iperf3_tcp import TcpOptions
from minigts.tools.iperf3_udp import UdpOptions

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
FAR = ("bra", "lju", "mil", "ham", "lon")
"""From ams: one to five hops away. TCP to each of them, and its trend, are tested in tests/lab."""
OFFERED_SHARE = 0.8
LOSS_PERCENT, RATE_MBIT = 2.0, 20.0
LOSSY = f"name: lossy\npair: {{hosts: [a, b], link: {{rtt: 4ms, rate: {RATE_MBIT:g}mbit, loss: {LOSS_PERCENT:g}%}}}}\n"
UNLIKELY = 1e-4
"""How seldom an honest link may fail the test of its loss, on either side."""

underlay = pytest.mark.parametrize("endpoints", ["none"], indirect=True)


def way_of(lab: Lab, endpoints: Mapping[str, Endpoint], source: str, target: str) -> PathUnderTest:
    far, mtu = endpoints[target], underlay_mtu(lab.plan)
    return PathUnderTest(far.address, endpoints[source].mtu, mtu, lab.plan.path(source, target))


def measure(
    lab: Lab, endpoints: Mapping[str, Endpoint], source: str, target: str, options: TcpOptions | UdpOptions
) -> Measured:
    tool = iperf3_tcp.TOOL if isinstance(options, TcpOptions) else iperf3_udp.TOOL
    argv = (*endpoints[source].prefix, *tool.argv(options, way_of(lab, endpoints, source, target)))
    result = lab.provider.run(source, argv, timeout_s=LIMIT_S)
    return tool.read(user_text(result.stdout), user_text(result.stderr))


@underlay
@pytest.mark.parametrize("target", FAR)
def test_udp_below_the_rate_arrives_at_every_hop(lab: Lab, endpoints: Mapping[str, Endpoint], target: str) -> None:
    rate_mbit = lab.plan.path("ams", target).rate_mbit
    assert rate_mbit is not None
    offered_mbit = OFFERED_SHARE * rate_mbit
    options = UdpOptions(duration="2s", rate=f"{offered_mbit:g}mbit")
    arrived_mbit = measure(lab, endpoints, "ams", target, options).value
    assert arrived_mbit == pytest.approx(offered_mbit, rel=0.01)


def test_a_link_loses_what_it_declares_and_carries_no_more_than_its_rate(make_lab: Any) -> None:
    lab = make_lab(LOSSY)
    ends = overlays.join(lab, "none", lambda _: None)
    count, both_ways = 2500, 1 - (1 - LOSS_PERCENT / 100) ** 2
    probed = calibration.probe(lab.provider, "a", ends["b"].address, count=count, interval_s=0.002)
    assert_likely(count - len(probed.rtts_ms), count, both_ways)
    options = UdpOptions(duration="4s", rate="30mbit", datagram="1400B")
    expected_mbit = RATE_MBIT * 1400 / (1400 + 42) * (1 - LOSS_PERCENT / 100)
    assert measure(lab, ends, "a", "b", options).value == pytest.approx(expected_mbit, rel=0.02)


def assert_likely(hits: int, count: int, chance: float) -> None:
    """`hits` out of `count` is what a chance may well give: exact binomial tails."""
    below = sum(binomial(hit, count, chance) for hit in range(hits + 1))
    above = 1 - below + binomial(hits, count, chance)
    assert min(below, above) > UNLIKELY, f"{hits} of {count} at {chance:.2%}"


def binomial(hits: int, count: int, chance: float) -> float:
    """The chance of exactly `hits`."""
    ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    return math.exp(ways + hits * math.log(chance) + (count - hits) * math.log(1 - chance))

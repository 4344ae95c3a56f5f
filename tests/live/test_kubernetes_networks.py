"""Networks between the pods of two nodes that share a link: what crosses it, the MTU, the round trip against the same
network between containers of Docker, a node that comes back, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from live import test_overlays
from live.conftest import brought_up, quiet
from minigts import lab as labs
from minigts import overlays
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(1800)]
LIMIT_S = 300.0
TOPOLOGY = """\
name: networks
defaults: {host: {memory: 1GB}}
pair: {hosts: [plane, worker], link: {rtt: 10ms, rate: 100mbit}}
"""
PLAIN = {
    "kubernetes-flannel-host-gw": "flannel-host-gw",
    "kubernetes-flannel-wireguard": "flannel-wireguard",
    "kubernetes-calico": "calico",
}
"""The same network between containers of Docker. flannel's VXLAN and plain routes: `test_kubernetes_cluster`."""
SAME_MS = 0.01
"""A veth and a bridge, or a route, take no time on the virtual clock."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    plan = parse(TOPOLOGY, "networks.yaml", known_overlays=overlays.known_names(), time="virtual")
    yield from brought_up(plan, "networks", tmp_path_factory)


def lowest_rtt_ms(lab: Lab, ends: Mapping[str, Endpoint]) -> float:
    return test_overlays.lowest_rtt_ms(lab, ends["plane"], ends["worker"])


def what_crosses_the_link(lab: Lab) -> set[str]:
    """By a capture of what each node's pod sends to the other's."""
    return {words["ENCAPSULATION"] for words in overlays.verify(lab, quiet).values()}


@pytest.mark.parametrize("network", PLAIN)
def test_a_network_between_pods_is_that_between_containers_and_heals(lab: Lab, network: str) -> None:
    declared = overlays.find(network).data_path
    plain_ms = lowest_rtt_ms(lab, overlays.join(lab, PLAIN[network], quiet))
    overlays.leave(lab, quiet)
    before = test_overlays.state(lab)

    ends = overlays.join(lab, network, quiet)
    crossed, rtt_ms = what_crosses_the_link(lab), lowest_rtt_ms(lab, ends)
    labs.restart(lab, "worker")
    again = overlays.rejoin(lab, "worker", quiet)
    healed, healed_ms = what_crosses_the_link(lab), lowest_rtt_ms(lab, again)
    overlays.leave(lab, quiet)

    assert crossed == healed == {declared.encapsulation}
    assert {end.mtu for end in (*ends.values(), *again.values())} == {declared.mtu_over(1500)}
    assert (rtt_ms, healed_ms) == (pytest.approx(plain_ms, abs=SAME_MS), pytest.approx(plain_ms, abs=SAME_MS))
    assert test_overlays.state(lab) == before

"""What a pod reaches that is two hops from the control plane, over each network: the API server by its Service's name,
and by the certificate of that name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from live.conftest import brought_up, quiet
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(3600)]
LIMIT_S = 120.0
ROW = """\
name: far
kubernetes: {dns: true}
defaults: {host: {memory: 1GB}, link: {rtt: 10ms, rate: 100mbit}}
chain: {hosts: [plane, middle, far]}
"""
SEGMENT = """\
name: far
kubernetes: {dns: true}
defaults: {host: {memory: 1GB}, link: {rtt: 10ms, rate: 100mbit}}
hosts: {plane: , middle: , far: }
switches: {s: }
links: [{ends: [plane, s]}, {ends: [middle, s]}, {ends: [far, s]}]
"""
NETWORKS = [name for name in overlays.known_names() if overlays.find(name).declaration.pods]


@dataclass(frozen=True)
class Cluster:
    lab: Lab
    ends: dict[str, Endpoint]

    def in_pod(self, *argv: str) -> str:
        """What the host's own program says in the network of the far node's pod."""
        end = self.ends["far"]
        return user_text(self.lab.provider.run(end.host, [*end.network, *argv], timeout_s=LIMIT_S).stdout)


@pytest.fixture(scope="module", params=NETWORKS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Over hosts in a row, or on one segment where the network needs that."""
    text = SEGMENT if overlays.find(request.param).data_path.one_segment else ROW
    plan = parse(text, "far.yaml", known_overlays=overlays.known_names(), time="virtual")
    for lab in brought_up(plan, "far", tmp_path_factory):
        yield Cluster(lab, overlays.join(lab, request.param, quiet))


def test_a_pod_two_hops_from_the_control_plane_has_an_answer_of_the_api_server(cluster: Cluster) -> None:
    asked = cluster.in_pod("dig", "+short", "+time=2", "@172.30.0.10", "kubernetes.default.svc.cluster.local")
    assert asked == "172.30.0.1\n"
    by_name = ["--resolve", "kubernetes.default:443:172.30.0.1", "https://kubernetes.default/readyz"]
    said = cluster.in_pod("curl", "-s", "-m", "20", "--cacert", "/etc/kubernetes/pki/ca.crt", *by_name)
    assert said == "ok"


def test_a_host_between_the_two_takes_none_of_it_for_invalid(cluster: Cluster) -> None:
    cluster.in_pod("curl", "-sk", "-m", "20", "-o", "/dev/null", "https://172.30.0.1/readyz")
    rules = user_text(cluster.lab.provider.run("middle", ["iptables-save", "-c"], timeout_s=LIMIT_S).stdout)
    (dropped,) = [line for line in rules.splitlines() if "INVALID -j DROP" in line]
    assert dropped.startswith("[0:0] ")

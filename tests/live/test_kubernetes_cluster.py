"""A cluster of Kubernetes over three hosts in virtual time: it is ready when it says so, its pods are as far apart as
their hosts, a Service answers, a node comes back, two clusters have the same samples, and nothing is left."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from live import test_overlays
from live.conftest import brought_up, quiet
from live.program import TOPOLOGIES, Program
from minigts import lab as labs
from minigts import overlays
from minigts.foreign import user_text
from minigts.judge.tolerances import exchange_tolerance
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.topology.read.load import load

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly]
LIMIT_S = 120.0
PATIENCE_S = 900.0
"""For a run with a cluster: a minute of two quiet cores."""
SERVERS_PORT = 12865


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of topologies/kubernetes.yaml, over which no overlay is laid yet."""
    plan = load(TOPOLOGIES / "kubernetes.yaml", known_overlays=overlays.known_names(), time="virtual")
    yield from brought_up(plan, "cluster", tmp_path_factory)


@pytest.fixture(scope="module")
def before(cluster: Lab) -> Mapping[str, str]:
    """The state of the hosts before the cluster."""
    return test_overlays.state(cluster)


@pytest.fixture(scope="module")
def ends(cluster: Lab, before: Mapping[str, str]) -> Mapping[str, Endpoint]:
    """The measuring pods of the cluster."""
    return overlays.join(cluster, "kubernetes", quiet)


def asked(lab: Lab, *arguments: str) -> Any:
    """What the API server knows, as JSON."""
    argv = ["kubectl", *arguments, "--output", "json"]
    return json.loads(user_text(lab.provider.run("plane", argv, timeout_s=LIMIT_S).stdout))


def ready(item: Any) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in item["status"]["conditions"])


def lowest_rtt_ms(lab: Lab, source: Endpoint, address: str) -> float:
    argv = [*source.prefix, "ping", "-c", "5", "-i", "0.2", "-q", address]
    said = user_text(lab.provider.run(source.host, argv, timeout_s=LIMIT_S).stdout)
    return float(said.splitlines()[-1].split(" = ")[1].split("/")[0])


def test_every_host_is_a_ready_node(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    nodes = asked(cluster, "get", "nodes")["items"]
    assert {node["metadata"]["name"]: ready(node) for node in nodes} == dict.fromkeys(ends, True)
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.34.4"}


def test_the_files_manifests_were_applied_and_their_pods_are_ready(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    pods = asked(cluster, "get", "pods", "--selector", "app=servers")["items"]
    assert Counter(pod["spec"]["nodeName"] for pod in pods if ready(pod)) == dict.fromkeys(ends, 3)


@pytest.mark.parametrize("far", ["worker1", "worker2"])
def test_pods_are_as_far_apart_as_their_hosts(cluster: Lab, ends: Mapping[str, Endpoint], far: str) -> None:
    path = cluster.plan.path("plane", far)
    tolerance = exchange_tolerance(cluster.plan, path, 1, frames=True)
    assert tolerance.allows(lowest_rtt_ms(cluster, ends["plane"], ends[far].address), path.rtt_ms)


def test_the_data_path_is_what_it_says(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    proven = overlays.verify(cluster, quiet)
    assert {words["ENCAPSULATION"] for words in proven.values()} == {"none"}
    assert {end.mtu for end in ends.values()} == {1500}


def test_a_service_answers_by_its_address_from_pods_and_hosts(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    address = asked(cluster, "get", "service", "servers")["spec"]["clusterIP"]
    for end in ends.values():
        for prefix in (end.network, ()):
            argv = [*prefix, "nc", "-z", "-w", "2", address, str(SERVERS_PORT)]
            cluster.provider.run(end.host, argv, timeout_s=LIMIT_S)


def test_a_service_without_pods_refuses_and_answers_once_they_are_there_again(
    cluster: Lab, ends: Mapping[str, Endpoint]
) -> None:
    address = asked(cluster, "get", "service", "servers")["spec"]["clusterIP"]
    connect = f"nc -z -w 2 {address} {SERVERS_PORT}"

    def on(host: str, *argv: str, check: bool = True) -> int:
        return cluster.provider.run(host, [*argv], timeout_s=LIMIT_S, check=check).code

    def comes_to(wanted: str) -> int:
        """Of worker2's pod. kube-proxy sets its rules at most once a second."""
        again = f"for i in $(seq 30); do {wanted} {connect} && exit; sleep 0.1; done; exit 1"
        return on("worker2", *ends["worker2"].network, "bash", "-c", again, check=False)

    on("plane", "kubectl", "scale", "deployment", "servers", "--replicas=0")
    on("plane", "kubectl", "wait", "--for=delete", "pods", "--selector=app=servers", "--timeout=90s")
    assert comes_to("!") == 0
    on("plane", "kubectl", "scale", "deployment", "servers", "--replicas=9")
    on("plane", "kubectl", "rollout", "status", "deployment", "servers", "--timeout=90s")
    assert comes_to("") == 0


def test_no_program_computed_for_so_long_that_it_was_interrupted(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    """Where in its code that is depends on the machine, and no two clusters are alike (decisions/kubernetes.md)."""
    said = {host: user_text(cluster.provider.run(host, ["dmesg"], timeout_s=LIMIT_S).stdout) for host in ends}
    assert [line for log in said.values() for line in log.splitlines() if re.search("spins|computes", line)] == []


def test_strangers_are_not_let_in(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    """Who has no credentials, and a node that asks for what is another's."""
    run = cluster.provider.run
    server = f"https://{cluster.plan.host('plane').address}:6443"
    code = run(
        "worker1",
        ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", f"{server}/api/v1/pods"],
        timeout_s=LIMIT_S,
    ).stdout
    assert code == "403"
    argv = ["kubectl", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "get", "secrets", "--all-namespaces"]
    refused = run("worker1", argv, timeout_s=LIMIT_S, check=False)
    assert refused.code != 0
    assert "Forbidden" in refused.stderr


def test_a_worker_comes_back_after_a_power_cut(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    labs.restart(cluster, "worker2")
    again = overlays.rejoin(cluster, "worker2", quiet)
    assert all(ready(node) for node in asked(cluster, "get", "nodes")["items"])
    path = cluster.plan.path("plane", "worker2")
    tolerance = exchange_tolerance(cluster.plan, path, 1, frames=True)
    assert tolerance.allows(lowest_rtt_ms(cluster, again["plane"], again["worker2"].address), path.rtt_ms)


def test_the_control_plane_comes_back_after_a_power_cut(cluster: Lab, ends: Mapping[str, Endpoint]) -> None:
    labs.restart(cluster, "plane")
    overlays.rejoin(cluster, "plane", quiet)
    assert all(ready(node) for node in asked(cluster, "get", "nodes")["items"])
    assert len(asked(cluster, "get", "pods", "--selector", "app=servers")["items"]) == 9


def test_it_leaves_nothing(cluster: Lab, before: Mapping[str, str], ends: Mapping[str, Endpoint]) -> None:
    overlays.leave(cluster, quiet)
    assert test_overlays.state(cluster) == before


def test_flannel_carries_packets_between_pods_in_vxlan(cluster: Lab, before: Mapping[str, str]) -> None:
    """It takes the place of the other cluster, and leaves nothing either."""
    ends = overlays.join(cluster, "kubernetes-flannel", quiet)
    proven = overlays.verify(cluster, quiet)
    path = cluster.plan.path("plane", "worker2")
    rtt_ms = lowest_rtt_ms(cluster, ends["plane"], ends["worker2"].address)
    overlays.leave(cluster, quiet)

    assert {words["ENCAPSULATION"] for words in proven.values()} == {"vxlan"}
    assert {end.mtu for end in ends.values()} == {1450}
    assert exchange_tolerance(cluster.plan, path, 1, frames=True).allows(rtt_ms, path.rtt_ms)
    assert test_overlays.state(cluster) == before


EXPERIMENT = f"""\
name: pods
title: Between pods
topology: {TOPOLOGIES / "kubernetes.yaml"}
overlays: [kubernetes]
seed: 1
repetitions: 1
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-each], options: {{count: 20, interval: 100ms}}}}
  - {{name: tcp, tool: iperf3-tcp, paths: [first-to-each], options: {{duration: 2s}}}}
"""


def test_two_clusters_of_one_file_have_the_same_samples(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(EXPERIMENT)
    samples = []
    for number in range(2):
        started = program.start("run", str(file), "--results", str(tmp_path / str(number)))
        stdout, stderr = started.communicate(timeout=PATIENCE_S)
        assert started.returncode == 0, stdout + stderr
        (found,) = (tmp_path / str(number)).rglob("samples.csv")
        samples.append(found.read_bytes())
    assert samples[0].count(b"\n") == 5
    assert samples[0] == samples[1]

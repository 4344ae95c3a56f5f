"""Two nodes with CoreDNS and kube-proxy's mode nftables: a Service answers by its address and by its name, and the
verbs know pods by their names."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from live.conftest import brought_up, quiet
from live.program import TOPOLOGIES, Program
from minigts import overlays
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(1800)]
LIMIT_S = 300.0
TOPOLOGY = """\
name: pods
overlay: kubernetes
kubernetes: {proxy: nftables, dns: true}
defaults: {host: {memory: 1GB}}
pair: {hosts: [plane, worker], link: {rtt: 10ms, rate: 100mbit}}
"""
GREETING = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: greeting, namespace: shop}
spec:
  nodeName: worker
  containers:
    - name: first
      image: toolbox
      imagePullPolicy: IfNotPresent
      command: [/bin/sh, -c, "echo good day; exec sleep 5000"]
      env: [{name: WORD, value: two words}]
    - {name: second, image: minigts/measure, imagePullPolicy: IfNotPresent, command: [sleep, "5000"]}
"""
EXPORT = """\
programs=$(jq -r .programs /run/minigts/host.json)
"$programs/ctr" --address /run/minigts/containerd/containerd.sock --namespace k8s.io \
  images export /root/measure.tar docker.io/minigts/measure:latest
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    plan = parse(TOPOLOGY, "pods.yaml", known_overlays=overlays.known_names(), time="virtual")
    for lab in brought_up(plan, "pods", tmp_path_factory):
        overlays.join(lab, "kubernetes", quiet)
        yield lab


@pytest.fixture(scope="module")
def minigts(cluster: Lab, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(cluster.rundir.parents[1], directory=tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def greeting(cluster: Lab, minigts: Program) -> str:
    """A pod of an image that was loaded, on the worker, from a file of this machine."""
    measure = minigts.directory / "measure.tar"
    cluster.provider.run("plane", ["bash", "-euc", EXPORT], timeout_s=LIMIT_S)
    cluster.provider.get("plane", PurePosixPath("/root/measure.tar"), measure)
    with tarfile.open(measure) as archive:
        layer = max(archive.getmembers(), key=lambda member: member.size)
        content = archive.extractfile(layer)
        assert content is not None
        (minigts.directory / "toolbox.tar").write_bytes(content.read())
    (minigts.directory / "greeting.yaml").write_text(GREETING)
    minigts.succeeds("load", "toolbox.tar")
    minigts.succeeds("kubectl", "apply", "-f", "greeting.yaml")
    minigts.succeeds("kubectl", "-n", "shop", "wait", "--for=condition=Ready", "pod/greeting", "--timeout=60s")
    return "pod/shop/greeting"


def test_an_image_that_a_node_has_is_not_loaded_again(minigts: Program, greeting: str) -> None:
    assert "every host had it already" in minigts.run("load", "toolbox.tar").stderr


def test_commands_run_in_a_pod_with_its_environment_and_address(minigts: Program, greeting: str) -> None:
    assert minigts.succeeds("exec", greeting, "--", "sh", "-c", 'echo "$WORD"') == "two words\n"
    assert minigts.succeeds("exec", f"{greeting}:second", "--", "sh", "-c", 'echo "$WORD"') == "\n"
    address = minigts.succeeds("kubectl", "-n", "shop", "get", "pod", "greeting", "-o", "jsonpath={.status.podIP}")
    assert address.startswith("172.31.1.")
    assert f"inet {address}/24" in minigts.succeeds("exec", greeting, "--", "ip", "-4", "address")
    assert minigts.run("exec", greeting, "--", "sh", "-c", "exit 7").returncode == 7


def test_logs_of_a_pod_are_what_its_containers_have_written(minigts: Program, greeting: str) -> None:
    shown = minigts.succeeds("logs", greeting)
    assert shown == f"==> {greeting}: first <==\ngood day\n==> {greeting}: second <==\n"


def test_an_unknown_pod_is_answered_by_those_that_there_are(minigts: Program, greeting: str) -> None:
    refused = minigts.run("exec", "pod/shop/greetings", "--", "true")
    assert refused.returncode == 2
    assert "no pod/shop/greetings; there are pod/" in refused.stderr
    assert ", pod/minigts/measure-" in refused.stderr
    assert f"did you mean '{greeting}'?" in refused.stderr


def test_no_log_has_the_token_by_which_nodes_join(cluster: Lab, minigts: Program) -> None:
    token = cluster.provider.run("plane", ["cat", "/etc/kubernetes/token"], timeout_s=LIMIT_S).stdout.strip()
    assert len(token) == 23
    assert token not in minigts.succeeds("logs")


@pytest.fixture(scope="module")
def service(minigts: Program) -> str:
    """The address of the Service `servers`, whose pods are ready."""
    (minigts.directory / "servers.yaml").write_text((TOPOLOGIES / "programs" / "servers.yaml").read_text())
    minigts.succeeds("kubectl", "apply", "-f", "servers.yaml")
    minigts.succeeds("kubectl", "rollout", "status", "deployment", "servers", "--timeout=90s")
    return minigts.succeeds("kubectl", "get", "service", "servers", "-o", "jsonpath={.spec.clusterIP}")


def test_a_service_answers_by_nftables_alone(cluster: Lab, service: str) -> None:
    ends = overlays.joined_overlay(cluster)
    assert ends is not None
    for end in ends.endpoints().values():
        for prefix in (end.network, ()):
            again = f"for i in $(seq 30); do nc -z -w 2 {service} 12865 && exit; sleep 0.1; done; exit 1"
            cluster.provider.run(end.host, [*prefix, "bash", "-c", again], timeout_s=LIMIT_S)
        rules = cluster.provider.run(end.host, ["nft", "list", "tables"], timeout_s=LIMIT_S).stdout
        assert "table ip kube-proxy" in rules
        chains = cluster.provider.run(end.host, ["iptables-save"], timeout_s=LIMIT_S).stdout
        assert "KUBE-SVC" not in chains


@pytest.mark.parametrize("name", ["servers.default", "servers.default.svc.cluster.local"])
def test_pods_find_a_service_by_its_name(minigts: Program, greeting: str, service: str, name: str) -> None:
    asked = minigts.run("exec", greeting, "--", "ping", "-n", "-c", "1", "-W", "1", name)
    assert f"({service})" in asked.stdout


def test_a_name_outside_the_cluster_does_not_exist(cluster: Lab, service: str) -> None:
    argv = ["dig", "+time=2", "+tries=1", "@172.30.0.10", "example.org"]
    said = cluster.provider.run("worker", argv, timeout_s=LIMIT_S, check=False).stdout
    assert "status: NXDOMAIN" in said

"""NetworkPolicy objects on a cluster whose topology asks for them, over each network: what they deny and allow, by
pods, ports and namespaces, at both ends of a connection, and between pods of one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from live.conftest import brought_up, quiet
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.overlays import joined_overlay, pods, policy
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(3600)]
LIMIT_S = 300.0
TOPOLOGY = """\
name: policies
overlay: kubernetes
kubernetes: {policies: true, dns: true}
defaults: {host: {memory: 1GB}}
pair: {hosts: [plane, worker], link: {rtt: 10ms, rate: 100mbit}}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{role: {role}}}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  containers: [{{name: main, image: minigts/measure, imagePullPolicy: IfNotPresent}}]
"""
PODS = {
    "shop/web": ("web", "worker"),
    "shop/friend": ("friend", "plane"),
    "shop/near": ("friend", "worker"),
    "shop/stranger": ("stranger", "plane"),
    "other/friend": ("friend", "plane"),
}
"""By namespace and name: a label, and the node."""
NETPERF, IPERF3 = 12865, 5201
"""On which every one of these pods listens."""
POLICY = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: {}, namespace: {}}}\nspec: {}\n"
DENIED = POLICY.format("closed", "shop", "{podSelector: {matchLabels: {role: web}}, policyTypes: [Ingress]}")
FRIENDS = POLICY.format(
    "friends",
    "shop",
    "{podSelector: {matchLabels: {role: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: "
    "{matchLabels: {role: friend}}}], ports: [{protocol: TCP, port: 12865}]}]}",
)
OTHERS = POLICY.format(
    "others",
    "shop",
    "{podSelector: {matchLabels: {role: web}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: "
    "{matchLabels: {kubernetes.io/metadata.name: other}}}]}]}",
)
MUTE = POLICY.format("mute", "other", "{podSelector: {}, policyTypes: [Egress]}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    plan = parse(TOPOLOGY, "policies.yaml", known_overlays=overlays.known_names(), time="virtual")
    yield from brought_up(plan, "policies", tmp_path_factory)


NETWORKS = [name for name in overlays.known_names() if overlays.find(name).declaration.pods]


@pytest.fixture(scope="module", params=NETWORKS)
def cluster(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    """Over that network, with these pods, and no policy."""
    overlays.join(lab, request.param, quiet)
    made = "".join(
        POD.format(name=full.partition("/")[2], namespace=full.partition("/")[0], role=role, node=node)
        for full, (role, node) in PODS.items()
    )
    for namespace in ("shop", "other"):
        kubectl(lab, "create", "namespace", namespace)
    kubectl(lab, "apply", "-f", "-", stdin=made)
    for namespace in ("shop", "other"):
        kubectl(lab, "-n", namespace, "wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s")
    return lab


def kubectl(lab: Lab, *words: str, stdin: str = "") -> str:
    return user_text(lab.provider.run("plane", ["kubectl", *words], timeout_s=LIMIT_S, stdin=stdin.encode()).stdout)


def comes_to(lab: Lab, source: str, port: int, *, let_through: bool) -> bool:
    """Whether that pod's connections to `web` come to be let through, or not. kube-router sets its rules some tenths of
    a second after a policy is there."""
    address = kubectl(lab, "-n", "shop", "get", "pod", "web", "-o", "jsonpath={.status.podIP}")
    inside = pods.running(lab, f"pod/{source}")
    connect = f"{'' if let_through else '!'} nc -z -w 1 {address} {port}"
    again = f"for i in $(seq 20); do {connect} && exit; sleep 0.2; done; exit 1"
    argv = [*inside.network, "bash", "-c", again]
    return lab.provider.run(inside.host, argv, timeout_s=LIMIT_S, check=False).code == 0


def reached(lab: Lab, wanted: dict[tuple[str, int], bool]) -> dict[tuple[str, int], bool]:
    """Of each pod and port: whether it is as wanted, in the end."""
    return {
        (source, port): let if comes_to(lab, source, port, let_through=let) else not let
        for (source, port), let in wanted.items()
    }


EVERYBODY = {(source, NETPERF): True for source in PODS if source != "shop/web"}


def test_without_a_policy_everybody_is_let_in(cluster: Lab) -> None:
    assert reached(cluster, EVERYBODY) == EVERYBODY


def test_a_policy_without_a_rule_lets_nobody_in(cluster: Lab) -> None:
    kubectl(cluster, "apply", "-f", "-", stdin=DENIED)
    wanted = dict.fromkeys(EVERYBODY, False)
    assert reached(cluster, wanted) == wanted


def test_rules_let_in_by_pods_and_ports(cluster: Lab) -> None:
    kubectl(cluster, "apply", "-f", "-", stdin=FRIENDS)
    wanted = {
        ("shop/friend", NETPERF): True,
        ("shop/near", NETPERF): True,
        ("shop/friend", IPERF3): False,
        ("shop/stranger", NETPERF): False,
        ("other/friend", NETPERF): False,
    }
    assert reached(cluster, wanted) == wanted


def test_rules_let_in_by_namespaces(cluster: Lab) -> None:
    kubectl(cluster, "apply", "-f", "-", stdin=OTHERS)
    wanted = {("other/friend", NETPERF): True, ("other/friend", IPERF3): True, ("shop/stranger", NETPERF): False}
    assert reached(cluster, wanted) == wanted


def test_a_policy_keeps_a_namespaces_pods_from_speaking(cluster: Lab) -> None:
    kubectl(cluster, "apply", "-f", "-", stdin=MUTE)
    wanted = {("other/friend", NETPERF): False, ("shop/friend", NETPERF): True}
    assert reached(cluster, wanted) == wanted


def test_once_the_policies_are_gone_everybody_is_let_in(cluster: Lab) -> None:
    kubectl(cluster, "delete", "networkpolicies", "--all", "-n", "shop")
    kubectl(cluster, "delete", "networkpolicies", "--all", "-n", "other")
    assert reached(cluster, EVERYBODY) == EVERYBODY


FILE = """\
name: shop
default: deny
groups: {web: [plane], store: [worker]}
rules: [{allow: {from: web, to: store, protocol: tcp, ports: [12865]}}]
"""


def opens(lab: Lab, prefix: Sequence[str], host: str, target: str, port: int) -> bool:
    """Whether that network's connection to the measuring pod on `target` is let through."""
    now = joined_overlay(lab)
    assert now is not None
    argv = [*prefix, "nc", "-z", "-w", "1", now.endpoints()[target].address, str(port)]
    return lab.provider.run(host, argv, timeout_s=LIMIT_S, check=False).code == 0


def test_a_file_of_minigts_becomes_objects_about_the_measuring_pods(cluster: Lab) -> None:
    """They are in force once `apply` ends; and users' pods and nodes are none of theirs."""
    now = joined_overlay(cluster)
    assert now is not None
    measuring = {host: end.network for host, end in now.endpoints().items()}
    friend = pods.running(cluster, "pod/shop/friend")

    def seen() -> tuple[bool, ...]:
        return (
            opens(cluster, measuring["plane"], "plane", "worker", NETPERF),
            opens(cluster, measuring["plane"], "plane", "worker", IPERF3),
            opens(cluster, measuring["worker"], "worker", "plane", NETPERF),
            opens(cluster, friend.network, friend.host, "worker", IPERF3),
            opens(cluster, [], "plane", "worker", IPERF3),
        )

    assert seen() == (True, True, True, True, True)
    policy.apply(cluster, policy.parse(FILE, "shop.yaml", ["plane", "worker"]))
    assert seen() == (True, False, False, True, True)
    policy.remove(cluster)
    assert seen() == (True, True, True, True, True)


def test_it_leaves_no_rule_and_no_set(cluster: Lab) -> None:
    overlays.leave(cluster, quiet)
    for host in ("plane", "worker"):
        said = user_text(
            cluster.provider.run(host, ["sh", "-c", "iptables-save; ipset list -name"], timeout_s=LIMIT_S).stdout
        )
        assert "KUBE" not in said

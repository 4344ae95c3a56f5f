"""The baseline's decisions for a cluster, by what kubectl and nodes would show; nothing runs."""

from __future__ import annotations

import pytest

from minigts.arena.boards import BOARDS
from minigts.arena.cluster_decisions import _findings, _Seen

NODES = ["gva   <none>   172.31.0.0/24", "brn   <none>   172.31.1.0/24", "zrh   <none>   172.31.2.0/24"]
DEPLOYMENTS = [
    "store   3   minigts/measure   12865   <none>   <none>",
    "web   3   minigts/measure   5201   <none>   <none>",
    "coredns   2   docker.io/minigts/coredns:built   <none>   170Mi   <none>",
]
SERVICES = [
    "kubernetes   6443   <none>",
    "store   12865   map[app:store]",
    "web   5201   map[app:web]",
    "kube-dns   53   map[k8s-app:kube-dns]",
]
ZONE = ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n"
PLANE = ["  90 Ssl kube-scheduler --a=b", "  91 Ssl kube-controller-manager --a=b"]


def shown(number: int, host: str) -> list[list[str]]:
    """What a node shows, in lines of each part."""
    others = [each for each in range(3) if each != number]
    return [
        [
            f"  10 Ssl  kubelet --config /c --hostname-override {host} --node-ip 10.255.0.{number + 1}",
            "  11 Ssl  kube-proxy --config /p",
            "  12 Sl  containerd --config /d",
            *(PLANE if host == "gva" else []),
        ],
        [
            f"4: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 \\    link/ether 02:00:00:00:00:0{number} brd f",
            "7: veth12@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue master cni0 state UP",
        ],
        [f"172.31.{each}.0/24 via 172.31.{each}.0 dev flannel.1 onlink" for each in others],
        [],
        [],
    ]


class Cluster:
    """A cluster in which all is well, until a line is put in the place of another."""

    def __init__(self) -> None:
        self.objects = [[*NODES], [*DEPLOYMENTS], [*SERVICES], [], [ZONE]]
        self.nodes = {host: shown(number, host) for number, host in enumerate(("gva", "brn", "zrh"))}

    def found(self) -> list[tuple[str, str]]:
        return [(each.kind, each.where) for each in _findings(self.seen())]

    def mend(self) -> str:
        (one,) = _findings(self.seen())
        return f"{one.on}: {one.mend}"

    def seen(self) -> _Seen:
        made = _Seen("gva", BOARDS["star-kubernetes"].manifest, ["\n".join(part) for part in self.objects])
        made.nodes = {host: ["\n".join(part) for part in parts] for host, parts in self.nodes.items()}
        return made


def test_of_a_cluster_in_which_all_is_well_nothing_is_found() -> None:
    assert Cluster().found() == []


@pytest.mark.parametrize(
    ("part", "line", "now", "fault", "mend"),
    [
        (0, 1, "brn   true   172.31.1.0/24", ("drained", "brn"), "uncordon brn"),
        (1, 1, "web   0   minigts/measure   5201   <none>   <none>", ("no-replicas", "deployment/web"), "replace"),
        (1, 2, "coredns   0   x   <none>   170Mi   <none>", ("no-replicas", "deployment/coredns"), "--replicas 2"),
        (1, 0, "store   3   minigts/measure:v2   12865   <none>   <none>", ("wrong-image", "deployment/store"), ""),
        (1, 1, "web   3   minigts/measure   8081   <none>   <none>", ("failing-probe", "deployment/web"), "replace"),
        (1, 1, "web   3   minigts/measure   5201   64Gi   <none>", ("no-room", "deployment/web"), "replace"),
        (1, 1, "web   3   minigts/measure   5201   <none>   [sh -c a b]", ("crash-loop", "deployment/web"), "replace"),
        (2, 1, "store   8081   map[app:store]", ("service-port", "service/store"), "replace"),
        (2, 3, "kube-dns   8081   map[k8s-app:kube-dns]", ("service-port", "service/kube-dns"), "patch"),
        (2, 2, "web   5201   map[app:web version:v2]", ("service-selector", "service/web"), "replace"),
        (4, 0, ZONE.replace("local", "lan"), ("wrong-zone", "configmap/coredns"), "rollout restart"),
    ],
)
def test_signs_of_objects(part: int, line: int, now: str, fault: tuple[str, str], mend: str) -> None:
    cluster = Cluster()
    cluster.objects[part][line] = now
    assert cluster.found() == [fault]
    assert cluster.mend().startswith("gva: ") and mend in cluster.mend()


def test_a_policy_that_the_manifest_does_not_have_is_a_sign() -> None:
    cluster = Cluster()
    cluster.objects[3] = ["guard   web"]
    assert cluster.found() == [("closed-by-policy", "deployment/web")]


@pytest.mark.parametrize(
    ("part", "line", "now", "kind", "mend"),
    [
        (0, 0, "", "kubelet-dead", "kubelet --config /c --hostname-override zrh --node-ip $(getent hosts zrh"),
        (0, 1, "", "proxy-dead", "kube-proxy --config /p"),
        (0, 2, "  12 Tl  containerd --config /d", "containerd-stopped", "kill -CONT 12"),
        (1, 0, "4: flannel.1: <BROADCAST,MULTICAST> mtu 1450", "flannel-off", "lladdr 02:00:00:00:00:01 dev flannel.1"),
        (1, 1, "7: veth12@if2: <BROADCAST,MULTICAST> mtu 1450", "pod-off", "ip link set veth12 up"),
        (2, 1, "", "no-way-to-pods", "ip route replace 172.31.1.0/24 via 172.31.1.0 dev flannel.1 onlink"),
        (3, 0, "tcp dport 6443 reject with tcp reset", "server-refused", "nft delete table"),
        (3, 0, "tcp dport 10250 drop", "kubelet-filtered", "nft delete table"),
        (3, 0, "udp dport 8472 drop", "flannel-filtered", "nft delete table"),
        (4, 0, "/run/netns/cni-1", "pod-no-gateway", "--net=/run/netns/cni-1 ip route add default via 172.31.2.1"),
    ],
)
def test_signs_of_a_node(part: int, line: int, now: str, kind: str, mend: str) -> None:
    cluster = Cluster()
    lines = cluster.nodes["zrh"][part]
    lines[line : line + 1] = [now]
    assert cluster.found() == [(kind, "zrh")]
    assert cluster.mend().startswith("zrh: ") and mend in cluster.mend()


def test_programs_of_the_control_plane_are_missed_there_alone() -> None:
    cluster = Cluster()
    cluster.nodes["gva"][0][3:] = PLANE[:1]
    assert cluster.found() == [("controllers-dead", "gva")]
    cluster.nodes["gva"][0][3:] = PLANE[1:]
    assert cluster.found() == [("scheduler-dead", "gva")]

"""A cluster's controller of volumes and addresses, against an API server that is a dictionary, and which addresses are
free for it."""

from __future__ import annotations

import importlib.util
import subprocess
from types import ModuleType
from typing import Any

import pytest

from minigts import overlays, paths
from minigts.overlays.balancer import MOST, balancer_on
from minigts.overlays.host_file import facts_for
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

PROJECT = paths.project_root()
PLACE = PROJECT / "provision" / "overlays" / "kubernetes" / "controller.py"
CLASS = {
    "metadata": {"name": "local-path"},
    "provisioner": "minigts/local-path",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}
POOL = ["10.20.0.253", "10.20.0.254"]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cluster_controller", PLACE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


class Cluster:
    """The API server's objects by path, and what was asked of it but to read."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists
        self.asked: list[tuple[str, str, Any]] = []

    def all(self, path: str) -> list[dict[str, Any]]:
        return self.lists.get(path.partition("?")[0].rpartition("/")[2], [])

    def ask(self, method: str, path: str, body: Any = None, _kind: str = "") -> dict[str, Any]:
        self.asked.append((method, path, body))
        return {}

    def patch(self, path: str, change: Any) -> None:
        self.asked.append(("PATCH", path, change))

    @property
    def done(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path, _ in self.asked]


def claim(node: str | None = "worker", **spec: Any) -> dict[str, Any]:
    noted = {} if node is None else {"annotations": {"volume.kubernetes.io/selected-node": node}}
    about = {"namespace": "shop", "name": "data", "uid": "u-1", "resourceVersion": "7", **noted}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": about, "spec": {"storageClassName": "local-path", **asked, **spec}}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}} for name in names]


def pod(name: str, phase: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase}}


def of_claims(*claims: dict[str, Any], **more: Any) -> Cluster:
    known = {"storageclasses": [CLASS], "nodes": named("plane", "worker"), "persistentvolumeclaims": [*claims]}
    return Cluster(**{**known, **more})


def test_a_claim_waits_until_the_scheduler_has_chosen_a_node(program: ModuleType) -> None:
    cluster = of_claims(claim(node=None))
    program.Volumes(cluster).see_to()
    assert cluster.asked == []


def test_a_claim_has_its_directory_made_by_a_pod_on_its_node_with_no_address_of_a_pod(program: ModuleType) -> None:
    cluster = of_claims(claim())
    program.Volumes(cluster).see_to()
    ((method, path, made),) = cluster.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/minigts/pods")
    assert (made["spec"]["nodeName"], made["spec"]["hostNetwork"]) == ("worker", True)
    assert made["spec"]["containers"][0]["command"][-1] == "/volumes/pvc-u-1"
    assert made["metadata"]["name"] == "make-pvc-u-1"


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_volume_is_made_no_sooner_than_its_directory(program: ModuleType, phase: str) -> None:
    cluster = of_claims(claim(), pods=[pod("make-pvc-u-1", phase)])
    program.Volumes(cluster).see_to()
    assert cluster.asked == []


def test_a_volume_is_bound_to_its_claim_and_its_node(program: ModuleType) -> None:
    cluster = of_claims(claim(), pods=[pod("make-pvc-u-1", "Succeeded")])
    program.Volumes(cluster).see_to()
    ((method, path, made),) = cluster.asked
    assert (method, path) == ("POST", "/api/v1/persistentvolumes")
    assert made["spec"]["claimRef"]["uid"] == "u-1"
    assert made["spec"]["hostPath"]["path"] == "/var/lib/minigts/volumes/pvc-u-1"
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["worker"]
    assert (made["spec"]["capacity"], made["spec"]["persistentVolumeReclaimPolicy"]) == ({"storage": "1Gi"}, "Delete")


def test_a_pod_that_has_made_a_directory_goes_once_the_claim_has_its_volume(program: ModuleType) -> None:
    cluster = of_claims(claim(volumeName="pvc-u-1"), pods=[pod("make-pvc-u-1", "Succeeded")])
    program.Volumes(cluster).see_to()
    assert cluster.done == [("DELETE", "/api/v1/namespaces/minigts/pods/make-pvc-u-1")]


def test_a_node_that_is_gone_is_chosen_anew(program: ModuleType) -> None:
    cluster = of_claims(claim(node="lost"))
    program.Volumes(cluster).see_to()
    ((method, path, change),) = cluster.asked
    assert (method, path) == ("PATCH", "/api/v1/namespaces/shop/persistentvolumeclaims/data")
    assert change == {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}


@pytest.mark.parametrize(
    ("spec", "kind", "why"),
    [
        ({"accessModes": ["ReadWriteMany"]}, {}, "cannot be ReadWriteMany"),
        ({"volumeMode": "Block"}, {}, "use volumeMode Filesystem"),
        ({"selector": {"matchLabels": {"a": "b"}}}, {}, "leave selector and dataSource out"),
        ({}, {"volumeBindingMode": "Immediate"}, "StorageClass local-path has to say volumeBindingMode"),
    ],
)
def test_a_claim_that_cannot_be_fulfilled_has_an_event_that_says_why(
    program: ModuleType, spec: dict[str, Any], kind: dict[str, Any], why: str
) -> None:
    cluster = of_claims(claim(**spec), storageclasses=[{**CLASS, **kind}])
    program.Volumes(cluster).see_to()
    ((method, path, event),) = cluster.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/shop/events")
    assert why in event["message"]
    assert event["involvedObject"]["kind"] == "PersistentVolumeClaim"


def test_an_event_that_there_is_already_is_no_failure(program: ModuleType) -> None:
    class Full(Cluster):
        def ask(self, method: str, path: str, body: Any = None, _kind: str = "") -> dict[str, Any]:
            raise program.Refused(409, "already exists")

    program.Volumes(Full(**of_claims(claim(volumeMode="Block")).lists)).see_to()


def test_claims_and_volumes_of_others_are_left_alone(program: ModuleType) -> None:
    other = {"metadata": {"name": "theirs"}, "spec": {}, "status": {"phase": "Released"}}
    cluster = of_claims(claim(storageClassName="theirs"), persistentvolumes=[other])
    program.Volumes(cluster).see_to()
    assert cluster.asked == []


def released(program: ModuleType, policy: str = "Delete", node: str = "worker", **path: str) -> dict[str, Any]:
    made: dict[str, Any] = program.volume_for(claim(), {**CLASS, "reclaimPolicy": policy}, node)
    made["spec"]["hostPath"].update(path)
    return {**made, "status": {"phase": "Released"}}


def test_a_released_volume_goes_once_its_directory_has_gone(program: ModuleType) -> None:
    volume = released(program)
    before, after = of_claims(persistentvolumes=[volume]), of_claims(persistentvolumes=[volume])
    after.lists["pods"] = [pod("remove-pvc-u-1", "Succeeded")]
    program.Volumes(before).see_to()
    program.Volumes(after).see_to()
    ((method, _, made),) = before.asked
    assert (method, made["spec"]["containers"][0]["command"]) == ("POST", ["/usr/bin/rm", "-rf", "/volumes/pvc-u-1"])
    assert after.done == [("DELETE", "/api/v1/persistentvolumes/pvc-u-1")]


def test_a_volume_that_is_to_be_retained_stays(program: ModuleType) -> None:
    cluster = of_claims(persistentvolumes=[released(program, policy="Retain")])
    program.Volumes(cluster).see_to()
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("node", "path"), [("lost", "/var/lib/minigts/volumes/pvc-u-1"), ("worker", "/var/lib/minigts/volumes/../etc")]
)
def test_nothing_is_removed_where_there_is_no_such_node_or_directory(program: ModuleType, node: str, path: str) -> None:
    cluster = of_claims(persistentvolumes=[released(program, node=node, path=path)])
    program.Volumes(cluster).see_to()
    assert cluster.done == [("DELETE", "/api/v1/persistentvolumes/pvc-u-1")]


def service(name: str, kind: str = "LoadBalancer", address: str = "", **spec: Any) -> dict[str, Any]:
    status = {"loadBalancer": {"ingress": [{"ip": address}]} if address else {}}
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"type": kind, **spec},
        "status": status,
    }


@pytest.fixture
def interface(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The addresses for which the host answers."""
    there = {"10.20.0.1"}

    def run(argv: tuple[str, ...], **_how: Any) -> Any:
        if argv[1] == "-j":
            text = ", ".join(f'{{"local": "{each}"}}' for each in sorted(there))
            return subprocess.CompletedProcess(argv, 0, f'[{{"addr_info": [{text}]}}]')
        assert argv[4:] == ("dev", "eth1")
        (there.add if argv[2] == "add" else there.discard)(argv[3].removesuffix("/32"))
        return subprocess.CompletedProcess(argv, 0, "")

    monkeypatch.setattr(program.subprocess, "run", run)
    return there


def given(cluster: Cluster) -> dict[str, Any]:
    """The status that each Service was given."""
    return {
        path.split("/")[-2]: change["status"]["loadBalancer"]
        for method, path, change in cluster.asked
        if method == "PATCH"
    }


def to(address: str) -> dict[str, Any]:
    return {"ingress": [{"ip": address}]}


def test_each_service_has_an_address_of_its_own_and_the_host_answers_for_it(
    program: ModuleType, interface: set[str]
) -> None:
    cluster = Cluster(services=[service("web"), service("db"), service("plain", kind="ClusterIP")])
    program.see_to_addresses(cluster, "eth1", POOL)
    assert given(cluster) == {"db": to(POOL[0]), "web": to(POOL[1])}
    assert interface == {"10.20.0.1", *POOL}


def test_an_address_that_a_service_has_is_kept_and_given_to_no_other(program: ModuleType, interface: set[str]) -> None:
    cluster = Cluster(services=[service("web", address=POOL[0]), service("db")])
    program.see_to_addresses(cluster, "eth1", POOL)
    assert given(cluster) == {"db": to(POOL[1])}


def test_a_service_may_ask_for_its_address(program: ModuleType, interface: set[str]) -> None:
    cluster = Cluster(services=[service("web", loadBalancerIP=POOL[1])])
    program.see_to_addresses(cluster, "eth1", POOL)
    assert given(cluster) == {"web": to(POOL[1])}


@pytest.mark.parametrize("gone", [{"kind": "ClusterIP"}, {"loadBalancerClass": "another/one"}])
def test_a_service_that_is_no_more_to_have_an_address_loses_it(
    program: ModuleType, interface: set[str], gone: dict[str, str]
) -> None:
    interface.add(POOL[0])
    cluster = Cluster(services=[service("web", address=POOL[0], **gone)])
    program.see_to_addresses(cluster, "eth1", POOL)
    assert given(cluster) == {"web": None}
    assert interface == {"10.20.0.1"}


@pytest.mark.parametrize(
    ("pool", "asked", "why"),
    [
        ([], {}, "no address is free: no segment of the control plane has a free one"),
        (POOL[:1], {}, "no address is free: this cluster's are 10.20.0.253 to 10.20.0.253"),
        (POOL, {"loadBalancerIP": "10.9.9.9"}, "10.9.9.9 is not free: this cluster's are 10.20.0.253 to 10.20.0.254"),
    ],
)
def test_a_service_without_an_address_has_an_event_that_says_why(
    program: ModuleType, interface: set[str], pool: list[str], asked: dict[str, str], why: str
) -> None:
    cluster = Cluster(services=[*(service(f"a{each}", address=each) for each in pool), service("web", **asked)])
    if asked:
        cluster.lists["services"] = [service("web", **asked)]
    program.see_to_addresses(cluster, "eth1", pool)
    ((_, path, event),) = cluster.asked
    assert path == "/api/v1/namespaces/shop/events"
    assert event["message"] == why


def addresses(plan: Plan, leader: str) -> tuple[str, ...] | None:
    found = balancer_on(plan, "kubernetes", plan.host(leader))
    return None if found is None else found.addresses


def test_a_clusters_addresses_are_the_highest_of_its_control_planes_segment(tmp_path: Any) -> None:
    plan = load(PROJECT / "topologies" / "kubernetes.yaml", known_overlays=overlays.known_names())
    found = addresses(plan, "plane")
    assert found is not None
    assert (len(found), found[0], found[-1]) == (MOST, "10.20.0.239", "10.20.0.254")
    assert facts_for(plan, plan.host("worker1"), overlays.find("kubernetes"), "", "docker").balancer is None
    assert facts_for(plan, plan.host("plane"), overlays.find("swarm"), "", "docker").balancer is None


@pytest.mark.parametrize(
    ("subnet", "expected"),
    [
        ("10.1.1.0/30", None),
        ("10.1.1.0/29", ("10.1.1.3", "10.1.1.4", "10.1.1.5", "10.1.1.6")),
    ],
)
def test_an_address_of_a_host_is_not_among_them(subnet: str, expected: tuple[str, ...] | None) -> None:
    plan = parse(f"name: x\nhosts: {{a: , b: }}\nlinks: [{{ends: [a, b], subnet: {subnet}}}]\n", "x")
    assert addresses(plan, "a") == expected


def test_two_clusters_on_one_segment_share_no_address() -> None:
    links = ", ".join(f"{{ends: [{each}, s]}}" for each in "abcd")
    hosts = "hosts: {a: , b: , c: , d: }\nswitches: {s: }\ngroups: {l: [a, b], r: [c, d]}\n"
    plan = parse(f"name: x\n{hosts}links: [{links}]\n", "x")
    left, right = addresses(plan, "a"), addresses(plan, "c")
    assert left is not None
    assert right is not None
    assert len({*left, *right}) == 2 * MOST

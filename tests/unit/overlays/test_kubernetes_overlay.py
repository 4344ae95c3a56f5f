"""A cluster of Kubernetes as an overlay: what it asks of hosts, the build of its programs, and the objects it makes."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from minigts import overlays, paths
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab
from minigts.overlays import Joined, catalogue, edit
from minigts.overlays.host_file import facts_for
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse

PROJECT = paths.project_root()
SCRIPTS = PROJECT / "provision" / "overlays"
BUILT = """\
description: a network
programs: {built: true, long: {minutes: 15, parts: 20, work_mb: 1}}
memory: {leader_mb: 1000, host_mb: 500}
data_path: {encapsulation: none}
"""


@pytest.fixture
def cluster() -> Plan:
    return load(PROJECT / "topologies" / "kubernetes.yaml", known_overlays=overlays.known_names())


def said_by(plan: Plan, host: str, command: str, place: Path, overlay: str = "kubernetes") -> str:
    """What a function of the overlay's scripts prints on that host; the scripts are only read."""
    programs = str(place / "programs")
    facts = facts_for(plan, plan.host(host), overlays.find(overlay), programs, "docker")
    (place / "host.json").write_text(facts.model_dump_json())
    argv = ["bash", "-c", f'set -- true; source "$0"; {command}', str(SCRIPTS / "phase.sh")]
    settings = {"PATH": "/usr/bin:/bin", "HOST_JSON": str(place / "host.json")}
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=settings).stdout


def objects(plan: Plan, host: str, command: str, place: Path) -> list[Any]:
    return [each for each in yaml.safe_load_all(said_by(plan, host, command, place)) if each is not None]


def test_every_host_is_a_node_whose_block_is_that_of_its_number(cluster: Plan, tmp_path: Path) -> None:
    made = objects(cluster, "plane", "objects", tmp_path)
    nodes = {each["metadata"]["name"]: each["spec"]["podCIDR"] for each in made if each["kind"] == "Node"}
    assert nodes == {"plane": "172.31.0.0/24", "worker1": "172.31.1.0/24", "worker2": "172.31.2.0/24"}


def test_the_measuring_pod_runs_on_every_node_whatever_keeps_others_away(cluster: Plan, tmp_path: Path) -> None:
    (daemons,) = [each for each in objects(cluster, "plane", "objects", tmp_path) if each["kind"] == "DaemonSet"]
    spec = daemons["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert [each["image"] for each in spec["containers"]] == ["minigts/measure:latest"]


def test_a_group_is_a_cluster_of_its_own(tmp_path: Path) -> None:
    plan = parse("name: x\nchain: {hosts: 4}\ngroups: {left: [h1, h2], right: [h3, h4]}\n", "x")
    made = objects(plan, "h3", "objects", tmp_path)
    assert [each["metadata"]["name"] for each in made if each["kind"] == "Node"] == ["h3", "h4"]
    assert f"https://{plan.host('h3').address}:6443" in said_by(plan, "h4", "credentials kube-proxy x", tmp_path)


@pytest.mark.parametrize(
    ("overlay", "mtu"),
    [
        ("kubernetes", 1500),
        ("kubernetes-flannel", 1450),
        ("kubernetes-flannel-host-gw", 1500),
        ("kubernetes-flannel-wireguard", 1420),
    ],
)
def test_pods_have_the_block_of_their_host_and_its_mtu(cluster: Plan, tmp_path: Path, overlay: str, mtu: int) -> None:
    said = said_by(cluster, "worker2", "network_configuration", tmp_path, overlay)
    (plugin,) = yaml.safe_load(said)["plugins"]
    assert (plugin["type"], plugin["mtu"]) == ("bridge", mtu)
    assert plugin["ipam"]["ranges"] == [[{"subnet": "172.31.2.0/24"}]]


def test_with_calicos_data_path_a_pod_has_no_bridge(cluster: Plan, tmp_path: Path) -> None:
    said = said_by(cluster, "worker2", "network_configuration", tmp_path, "kubernetes-calico")
    (plugin,) = yaml.safe_load(said)["plugins"]
    assert (plugin["type"], plugin["mtu"]) == ("ptp", 1480)
    assert plugin["ipam"]["ranges"] == [[{"subnet": "172.31.2.0/24"}]]
    assert plugin["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}]


def test_every_node_announces_its_block_to_every_other_through_the_tunnel(cluster: Plan, tmp_path: Path) -> None:
    said = said_by(cluster, "plane", 'bgp_configuration "$(host_block)"', tmp_path, "kubernetes-calico")
    others = [cluster.host(name).address for name in ("worker1", "worker2")]
    assert "route 172.31.0.0/24 blackhole;" in said
    assert re.findall("neighbor (.*) as 64512", said) == others
    assert re.findall(r'route (.*)/32 via (.*) dev "tunl0" onlink', said) == [(each, each) for each in others]


@pytest.mark.parametrize(
    ("command", "kind", "expected"),
    [
        ("kubelet_settings", "KubeletConfiguration", {"authorization": {"mode": "Webhook"}, "failSwapOn": False}),
        ("proxy_settings", "KubeProxyConfiguration", {"clusterCIDR": "172.31.0.0/16", "hostnameOverride": "worker1"}),
    ],
)
def test_settings_of_a_nodes_daemons_are_yaml(
    cluster: Plan, tmp_path: Path, command: str, kind: str, expected: dict[str, object]
) -> None:
    (settings,) = objects(cluster, "worker1", command, tmp_path)
    assert settings["kind"] == kind
    assert settings.items() >= expected.items()


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("h1: {memory: 900MB}, h2: {memory: 600MB}", "1000 MB on host h1, the first of its network, which has 900 MB"),
        (
            "h1: {memory: 1GB}, h2: {memory: 300MB}",
            "400 MB on host h2 which has 300 MB in topology x: write `memory: 400",
        ),
    ],
)
def test_hosts_with_too_little_memory_are_refused(memory: str, message: str) -> None:
    plan = parse(f"name: x\nhosts: {{{memory}}}\nlinks: [{{ends: [h1, h2]}}]\n", "x")
    with pytest.raises(InputError, match=message) as refused:
        overlays.require_fit(plan, "kubernetes")
    assert refused.value.exit_code == 2
    overlays.require_fit(plan, "swarm")


def joined_by(links: str, more: str = "") -> Plan:
    """Hosts of one letter, and a switch `s` where a link leads to it."""
    ends = [link.split("-") for link in links.split()]
    hosts = ", ".join(f"{host}: {{memory: 1GB}}" for host in sorted({each for pair in ends for each in pair} - {"s"}))
    written = ", ".join(f"{{ends: [{', '.join(pair)}]}}" for pair in ends)
    switches = "switches: {s: }\n" if "s" in links else ""
    return parse(f"name: x\nhosts: {{{hosts}}}\n{switches}links: [{written}]\n{more}", "x")


PAIRS = "groups: {left: [a, b], right: [c, d]}\n"


@pytest.mark.parametrize(
    ("links", "more"), [("a-b", ""), ("a-s b-s c-s", ""), ("a-b a-s b-s c-s", ""), ("a-b b-c c-d", PAIRS)]
)
def test_flannel_sends_packets_as_they_are_over_one_segment(links: str, more: str) -> None:
    overlays.require_fit(joined_by(links, more), "kubernetes-flannel-host-gw")


@pytest.mark.parametrize(
    ("links", "more", "whom"), [("a-b b-c", "", "c is on none with a"), ("a-b b-c b-d", PAIRS, "d is on none with c")]
)
def test_a_host_that_is_no_neighbour_is_no_node_without_encapsulation(links: str, more: str, whom: str) -> None:
    plan = joined_by(links, more)
    with pytest.raises(InputError, match=f"needs all hosts on one segment, .* in topology x {whom}") as refused:
        overlays.require_fit(plan, "kubernetes-flannel-host-gw")
    assert refused.value.exit_code == 2
    overlays.require_fit(plan, "kubernetes-flannel")


def test_flanneld_sends_by_the_interface_behind_which_every_other_host_is(tmp_path: Path) -> None:
    plan = joined_by("a-b a-s b-s c-s")
    (port,) = [port for port in plan.host("b").ports if "s" in port.link]
    said = said_by(plan, "b", "choose_segment; echo $interface $address", tmp_path, "kubernetes-flannel-host-gw")
    assert said.split() == [port.name, port.address]


def test_a_change_of_a_build_that_it_runs_too_makes_its_programs_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    beside = tmp_path / "beside" / "build"
    beside.mkdir(parents=True)
    (beside / "go.mod").write_text("one")
    net = in_folder(tmp_path, BUILT.replace("work_mb: 1", "work_mb: 1, also: [beside]"))
    first = net.programs(lambda _: None)
    assert net.programs(lambda _: None) == first
    (beside / "go.mod").write_text("two")
    assert net.programs(lambda _: None) != first


def in_folder(tmp_path: Path, text: str) -> overlays.Overlay:
    build = tmp_path / "net" / "build"
    build.mkdir(parents=True)
    script = build / "build.sh"
    script.write_text(
        '#!/bin/sh\nfor i in $(seq 20); do echo "package $i"; done >$1/log\nsleep 1.5\necho made >$1/program\n'
    )
    script.chmod(0o755)
    (tmp_path / "net" / "overlay.yaml").write_text(text)
    return catalogue.read_folder(tmp_path / "net")[0]


def test_a_long_build_says_how_long_and_how_far_it_is_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    net, said = in_folder(tmp_path, BUILT), list[str]()
    first = net.programs(said.append)
    assert first is not None
    assert (first / "program").read_text() == "made\n"
    assert said[0] == "building the programs of net; once, some 15 minutes on two cores"
    assert said[1:] == ["compiling the programs of net: 20 of some 20 parts, less than a minute left"]
    assert net.programs(said.append) == first
    assert len(said) == 2


def test_a_long_build_that_fails_says_where_its_log_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    net = in_folder(tmp_path, BUILT)
    (net.folder / "build" / "build.sh").write_text("#!/bin/sh\necho no compiler >$1/log\necho no compiler\nexit 1\n")
    with pytest.raises(EnvironmentLacks, match=r"net could not be built: .*\n    no compiler\nThe log: .*"):
        net.programs(lambda _: None)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("built: true, long", "supplied: [a], long", "2: programs: `long:` is about programs that are built"),
        ("minutes: 15", "minutes: 0", r"2: programs\.long\.minutes: "),
        ("leader_mb: 1000, ", "", "3: memory: 'leader_mb' is missing"),
    ],
)
def test_a_bad_declaration_says_where(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        in_folder(tmp_path, BUILT.replace(before, after, 1))


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("", "iptables"),
        ("kubernetes: {proxy: nftables}\n", "nftables"),
        ("kubernetes: {proxy: ipvs}\n", "ipvs"),
    ],
)
def test_kube_proxy_has_the_mode_of_the_topology(tmp_path: Path, written: str, mode: str) -> None:
    plan = parse(f"name: x\n{written}pair: {{}}\n", "x.yaml")
    (settings,) = objects(plan, "h2", "proxy_settings", tmp_path)
    assert settings["mode"] == mode
    assert ('"proxy"' in plan_json(plan)) == bool(written)


@pytest.mark.parametrize(("written", "servers"), [("", None), ("kubernetes: {dns: true}\n", ["172.30.0.10"])])
def test_pods_ask_coredns_where_the_topology_has_it(tmp_path: Path, written: str, servers: list[str] | None) -> None:
    plan = parse(f"name: x\n{written}pair: {{}}\n", "x.yaml")
    (settings,) = objects(plan, "h2", "kubelet_settings", tmp_path)
    assert settings.get("clusterDNS") == servers


LOST = """\
kubectl() { if [[ $1 == get ]]; then printf 'node/%s\\n' plane gone worker1 worker2; else echo "$*" >&2; fi; }
take_away_lost_nodes 2>&1
"""


def test_a_node_whose_host_the_lab_no_longer_has_is_taken_away(cluster: Plan, tmp_path: Path) -> None:
    assert said_by(cluster, "plane", LOST, tmp_path) == "delete node/gone\n"


def test_an_altered_lab_that_does_not_fit_is_refused_before_the_cluster_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = parse("name: x\nhosts: {a: {memory: 1GB}, b: {memory: 300MB}}\nlinks: [{ends: [a, b]}]\n", "x")
    monkeypatch.setattr(edit, "joined_overlay", lambda _: Joined(name="kubernetes", programs=""))
    monkeypatch.setattr(edit, "require_alterable", lambda *_: None)
    monkeypatch.setattr(edit, "leave", lambda *_, **__: pytest.fail("left"))
    lab = cast(Lab, SimpleNamespace(read_record=lambda: SimpleNamespace(off=frozenset())))
    with pytest.raises(InputError, match="needs 400 MB on host b"):
        edit.alter(lab, after, lambda _: None)


KUBEADM = """\
kubeadm() { cat <<'END'
  resourceVersion: "0"
spec:
---
data:
  Corefile: |
    .:53 {
        prometheus :9153
        forward . /etc/resolv.conf {
           max_concurrent 1000
        }
        cache 30 {
           disable success cluster.local
        }
        loop
        reload
    }
END
}
"""


def test_coredns_asks_nobody_outside_the_lab(cluster: Plan, tmp_path: Path) -> None:
    (first, second) = yaml.safe_load_all(said_by(cluster, "plane", f"{KUBEADM}name_service", tmp_path))
    assert first == {"spec": None}
    words = " ".join(second["data"]["Corefile"].split())
    outside = ".:53 { template IN ANY . { rcode NXDOMAIN } } "
    inside = "cluster.local:53 in-addr.arpa:53 ip6.arpa:53 { prometheus :9153 cache 30 { disable success cluster.local "
    assert words == outside + inside + "} reload }"


SAID = """\
own_pods() {{ printf '%s' '{{"items": [{{"status": {{"containerStatuses": [
  {{"containerID": "containerd://ended", "state": {{"terminated": {{}}}}}},
  {{"containerID": "containerd://one", "state": {{"running": {{}}}}}}]}}}}, {{"status": {{}}}}]}}'; }}
containers() {{ printf '%s\\n' {tasks}; }}
if no_pod_is_said_to_run_that_does_not; then echo true; else echo old; fi
"""


@pytest.mark.parametrize(("tasks", "expected"), [("one two", "true"), ("two", "old"), ("", "old")])
def test_a_node_that_joins_again_waits_until_its_pods_are_not_said_to_run_as_before(
    cluster: Plan, tmp_path: Path, tasks: str, expected: str
) -> None:
    assert said_by(cluster, "worker1", SAID.format(tasks=tasks), tmp_path) == f"{expected}\n"


def test_a_claim_that_names_no_class_has_the_one_of_nodes_disks(cluster: Plan, tmp_path: Path) -> None:
    (kind,) = [each for each in objects(cluster, "plane", "objects", tmp_path) if each["kind"] == "StorageClass"]
    assert kind["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert kind["volumeBindingMode"] == "WaitForFirstConsumer"


def test_the_controller_may_make_pods_in_the_namespace_of_minigts_alone(cluster: Plan, tmp_path: Path) -> None:
    made = objects(cluster, "plane", "controller_objects", tmp_path)
    roles = {each["kind"]: each["rules"] for each in made if each["kind"] in {"Role", "ClusterRole"}}
    assert [rule["resources"] for rule in roles["Role"]] == [["pods"]]
    assert "pods" not in [each for rule in roles["ClusterRole"] for each in rule["resources"]]


CONTROLLER = """\
kubectl() { :; }
start_daemon() { echo "started $*"; }
daemon_runs() { return 1; }
controller_token=/dev/null
start_controller
"""


def test_the_controller_has_the_addresses_that_are_free_on_the_control_planes_segment(
    cluster: Plan, tmp_path: Path
) -> None:
    started = said_by(cluster, "plane", CONTROLLER, tmp_path).split()
    assert started[1:3] == ["cluster-controller", "python3"]
    assert started[started.index("/dev/null") + 1 :][:2] == ["eth1", "10.20.0.239"]
    narrow = parse("name: x\nhosts: {a: , b: }\nlinks: [{ends: [a, b], subnet: 10.1.1.0/30}]\n", "x")
    assert said_by(narrow, "a", CONTROLLER, tmp_path).split()[-1] == "/dev/null"


MANIFESTS = """\
manifests={place}
kubectl() {{ [[ $1 != get ]] || cat {place}/said.json; }}
wait_for_workload() {{ echo "workload $*"; }}
wait_for_address() {{ echo "address $*"; }}
apply_manifests
"""


def test_up_waits_for_workloads_and_for_addresses_of_the_users_manifests(cluster: Plan, tmp_path: Path) -> None:
    def item(kind: str, name: str, **spec: str) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"namespace": "shop", "name": name}, "spec": spec}

    items = [
        item("Deployment", "web"),
        item("Service", "inside", type="ClusterIP"),
        item("Service", "outside", type="LoadBalancer"),
        item("Service", "theirs", type="LoadBalancer", loadBalancerClass="another/one"),
        item("PersistentVolumeClaim", "data"),
    ]
    (tmp_path / "said.json").write_text(json.dumps({"items": items}))
    said = said_by(cluster, "plane", MANIFESTS.format(place=tmp_path), tmp_path)
    assert said.splitlines() == ["workload shop Deployment/web", "address shop Service/outside"]


@pytest.mark.parametrize("overlay", ["kubernetes-flannel", "kubernetes-flannel-wireguard", "kubernetes-calico"])
def test_a_host_sees_the_node_of_a_pod_where_its_answers_would_be_encapsulated(
    cluster: Plan, tmp_path: Path, overlay: str
) -> None:
    rules = said_by(cluster, "worker2", "nft() { cat; }; masquerade_pods", tmp_path, overlay)
    own = cluster.host("worker2").address
    assert f"ip saddr 172.31.2.0/24 ip daddr != {{ 172.31.0.0/16, 224.0.0.0/4 }} counter snat to {own}" in rules
    assert said_by(cluster, "worker2", "nft() { cat; }; masquerade_pods", tmp_path) == ""


WAYS = "ways() { echo 172.31.2.0/24; }; ABSENT='%s'; if every_block_has_a_way; then echo all; else echo lacking; fi"
NODES = "kubectl() { echo $* >&2; }; apply_manifests() { :; }; ABSENT='%s'; wait_for_cluster 2>&1"


def test_nobody_waits_for_a_node_that_is_off(cluster: Plan, tmp_path: Path) -> None:
    assert said_by(cluster, "plane", WAYS % "", tmp_path) == "lacking\n"
    assert said_by(cluster, "plane", WAYS % "worker1", tmp_path) == "all\n"
    assert said_by(cluster, "plane", WAYS % "worker1 worker2", tmp_path) == "all\n"
    assert said_by(cluster, "plane", NODES % "worker1", tmp_path).count("worker2") == 1
    assert "node plane worker2 --timeout" in said_by(cluster, "plane", NODES % "worker1", tmp_path)
    assert "node plane worker1 worker2 --timeout" in said_by(cluster, "plane", NODES % "", tmp_path)


POLICIES = """\
credentials() { :; }
start_daemon() { echo "started $*"; }
await() { :; }
start_policies
"""


AWAIT = """\
wait_until() { echo "$1 s"; "${@:2}"; }
daemon_runs() { [[ $1 == api ]]; }
answers() { [[ $1 == yes ]]; }
await api 60 answers yes && await api 60 answers no || echo 'not ready'
await other 60 answers no || echo 'has ended'
"""


@pytest.mark.parametrize(("time", "waited"), [("virtual", "60 s"), ("real", "480 s")])
def test_what_is_waited_for_has_more_time_on_a_busy_machine_and_none_once_its_program_has_ended(
    tmp_path: Path, time: str, waited: str
) -> None:
    plan = parse(f"name: x\ntime: {time}\npair: {{}}\n", "x.yaml")
    said = said_by(plan, "h1", AWAIT, tmp_path)
    assert said.splitlines() == [waited, waited, "not ready", waited, "has ended"]


def test_kube_router_enforces_policies_where_the_topology_says_so(cluster: Plan, tmp_path: Path) -> None:
    plan = parse("name: x\nkubernetes: {policies: true}\npair: {}\n", "x.yaml")
    started = said_by(plan, "h2", POLICIES, tmp_path)
    assert "/kube-router --kubeconfig /etc/kubernetes/policies.conf --hostname-override h2" in started
    assert said_by(cluster, "worker1", POLICIES, tmp_path) == ""


def test_a_policy_becomes_a_networkpolicy_of_each_measuring_pod(cluster: Plan, tmp_path: Path) -> None:
    rule = {"from": ["plane"], "ports": [{"protocol": "TCP", "port": 80, "endPort": 80}]}
    text = json.dumps({"plane": [], "worker1": [rule, {"from": ["worker2"], "ports": []}], "worker2": []})
    said = said_by(cluster, "plane", f"mark=m POLICY={shlex.quote(text)}; network_policies", tmp_path)
    made = {each["metadata"]["name"]: each["spec"] for each in map(json.loads, said.splitlines())}
    assert set(made) == {"minigts-m-plane", "minigts-m-worker1", "minigts-m-worker2"}
    spec = made["minigts-m-worker1"]
    assert spec["podSelector"] == {"matchLabels": {"minigts/host": "worker1"}}
    others, ports, everything = spec["ingress"]
    blocks = [each["ipBlock"] for each in others["from"] if "ipBlock" in each]
    assert blocks[0] == {"cidr": "0.0.0.0/0", "except": ["172.31.0.0/16"]}
    assert [each["cidr"] for each in blocks[1:]] == ["172.31.0.0/31", "172.31.1.0/31", "172.31.2.0/31"]
    assert ports["ports"] == rule["ports"]
    assert ports["from"][0]["podSelector"]["matchExpressions"][0]["values"] == ["plane"]
    assert "ports" not in everything
    assert len(made["minigts-m-plane"]["ingress"]) == 1


RULES = """\
iptables-save() {{ printf '%s\\n' '-A X -m comment --comment "run through nw policy {known}" -j Y' '-A X -j Z'; }}
mark={mark}
if kube_router_has; then echo has; else echo waits; fi
"""


@pytest.mark.parametrize(
    ("known", "mark", "expected"),
    [
        ("minigts-m-worker1", "m", "has"),
        ("minigts-old-worker1", "m", "waits"),
        ("minigts-m-worker1", "", "waits"),
        ("a-users-own", "", "has"),
    ],
)
def test_a_node_waits_until_its_kube_router_has_this_policy_and_no_other(
    cluster: Plan, tmp_path: Path, known: str, mark: str, expected: str
) -> None:
    assert said_by(cluster, "worker1", RULES.format(known=known, mark=mark), tmp_path) == f"{expected}\n"


def test_its_account_may_read_and_nothing_else(cluster: Plan, tmp_path: Path) -> None:
    made = objects(cluster, "plane", "rights_of_policies", tmp_path)
    (role,) = [each for each in made if each["kind"] == "ClusterRole"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_what_a_cluster_is_set_to_is_told_to_no_other_overlay(cluster: Plan) -> None:
    facts = facts_for(cluster, cluster.hosts[0], overlays.find("swarm"), "", "docker")
    assert "kubernetes" not in facts.model_dump_json()


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("ipv", "2: kubernetes.proxy: 'ipv' is not a mode of kube-proxy: .*did you mean 'ipvs'"),
        ("nftable", "2: kubernetes.proxy: 'nftable' is not a mode of kube-proxy: .*did you mean 'nftables'"),
    ],
)
def test_a_mode_that_there_is_not_is_refused(proxy: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(f"name: x\nkubernetes: {{proxy: {proxy}}}\npair: {{}}\n", "x.yaml")


RECORDING = """\
#!/bin/bash
echo "$*" >>"$0.asked"
[[ $* != *'images import -' ]] || tar -x -C "${0%/*}"
"""


def test_a_root_file_system_becomes_an_image_whose_layer_has_its_hash(
    cluster: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, kept = tmp_path / "programs", tmp_path / "kept"
    programs.mkdir()
    (programs / "ctr").write_text(RECORDING)
    (programs / "ctr").chmod(0o755)
    (tmp_path / "root.tar.gz").write_bytes(gzip.compress(b"files"))
    words = f"IMAGE_FILE={tmp_path}/root.tar.gz IMAGE_KIND=filesystem IMAGE_NAME=web IMAGE_TAG=minigts/image:k"
    said_by(cluster, "plane", f"loaded_root={kept}; {words}; load", tmp_path)
    (entry,) = json.loads((programs / "manifest.json").read_text())
    assert entry["RepoTags"] == ["web:latest"]
    configuration = json.loads((programs / "config0.json").read_text())
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'files').hexdigest()}"]
    assert configuration["config"] == {"Entrypoint": None}
    tagged = (programs / "ctr.asked").read_text().splitlines()[-1]
    assert tagged.endswith("images tag --force docker.io/library/web:latest docker.io/minigts/image:k")
    assert not (tmp_path / "root.tar.gz").exists()
    assert not kept.exists()

"""What a cluster over flannel goes through: power cuts with names and policies, nodes that are off, a copy of the lab,
hosts that come and go, and the cluster being left and made anew; and two clusters in one lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Program

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(3600)]
PATIENCE_S = 1200.0
"""For what makes a cluster, on a busy machine."""
TOPOLOGY = """\
name: life
overlay: kubernetes-flannel
kubernetes: {dns: true, policies: true}
defaults: {host: {memory: 1GB}}
pair: {hosts: [plane, worker], link: {rtt: 10ms, rate: 100mbit}}
"""
OBJECTS = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {role: web}}
spec:
  nodeName: worker
  containers: [{name: main, image: minigts/measure, imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {role: web}, ports: [{port: 12865}], clusterIP: None}
---
apiVersion: v1
kind: Pod
metadata: {name: friend, labels: {role: friend}}
spec:
  nodeName: plane
  containers: [{name: main, image: minigts/measure, imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Pod
metadata: {name: stranger}
spec:
  nodeName: plane
  containers: [{name: main, image: minigts/measure, imagePullPolicy: IfNotPresent}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: friends}
spec:
  podSelector: {matchLabels: {role: web}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {role: friend}}}]}]
"""
ASK = """\
tries=0
while [ $((tries += 1)) -le 60 ]; do
  said=$(ping -n -c 1 -W 1 web 2>&1)
  code=$?
  case $said in *"(172.31.1."*) test $code {wanted} 0 && exit ;; esac
  sleep 1
done
echo "$said"
exit 1
"""
"""Whether echo requests to `web`, by its name, come to be let in, or come to be not, within a minute of the lab. Who
only watches the API server, as kube-router, may notice up to 45 s later that it was restarted: client-go asks a
connection on which nothing came for 30 s whether it still stands, and waits 15 s for the answer."""
PAIRS = """\
name: pairs
overlay: kubernetes
defaults: {host: {memory: 1GB}, link: {rtt: 10ms, rate: 100mbit}}
hosts: {a1: , a2: , b1: , b2: }
links: [{ends: [a1, a2]}, {ends: [b1, b2]}, {ends: [a2, b1]}]
groups: {a: [a1, a2], b: [b1, b2]}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(tmp_path_factory.mktemp("life") / "state", directory=tmp_path_factory.mktemp("here"))
    yield made
    made.run("down", "--all")


def done(program: Program, *arguments: str, code: int = 0) -> str:
    """What it says on stdout, or wherever it fails; it has to end with `code`."""
    started = program.start(*arguments)
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == code, f"{' '.join(arguments)}: {started.returncode}\n{stdout}{stderr}"
    return stdout if code == 0 else stdout + stderr


@pytest.fixture(scope="module")
def life(program: Program) -> Program:
    """With the cluster, its pods, and the policy."""
    (program.directory / "life.yaml").write_text(TOPOLOGY)
    (program.directory / "objects.yaml").write_text(OBJECTS)
    done(program, "up", "life.yaml")
    done(program, "kubectl", "apply", "-f", "objects.yaml")
    done(program, "kubectl", "wait", "--for=condition=Ready", "pods", "--all", "--timeout=90s")
    return program


def ready(program: Program, *lab: str) -> dict[str, str]:
    """Of each node what kubectl says of it."""
    lines = done(program, "kubectl", *lab, "get", "nodes", "--no-headers").splitlines()
    return {name: state for name, state, *_ in map(str.split, lines)}


def holds(program: Program, *lab: str) -> None:
    """Names are known and the policy is in force: the friend is let in, and the stranger is not. kube-proxy runs on."""
    done(program, "kubectl", *lab, "wait", "--for=condition=Ready", "pods", "--all", "--timeout=90s")
    for pod, wanted in (("friend", "-eq"), ("stranger", "-ne")):
        done(program, "exec", *lab, f"pod/{pod}", "--", "sh", "-c", ASK.format(wanted=wanted))
    for host in BOTH:
        done(program, "exec", *lab, host, "--", "pgrep", "-x", "kube-proxy")


BOTH = {"plane": "Ready", "worker": "Ready"}


def test_names_and_policies_hold_over_flannel(life: Program) -> None:
    holds(life)


def test_a_check_names_a_program_that_has_ended(life: Program) -> None:
    done(life, "check", "--quick", "--overlay")
    done(life, "exec", "worker", "--", "pkill", "-x", "kube-proxy")
    assert "kube-proxy has ended" in done(life, "check", "--quick", "--overlay", code=1)
    done(life, "restart", "worker")
    done(life, "check", "--quick", "--overlay")


@pytest.mark.parametrize("host", ["worker", "plane"])
def test_they_hold_after_a_power_cut(life: Program, host: str) -> None:
    done(life, "restart", host)
    assert ready(life) == BOTH
    holds(life)


def test_a_worker_that_is_off_holds_up_no_control_plane(life: Program) -> None:
    done(life, "kill", "worker")
    done(life, "restart", "plane")
    assert ready(life)["plane"] == "Ready"
    done(life, "start", "worker")
    assert ready(life) == BOTH
    holds(life)


def test_a_worker_that_could_not_join_without_its_control_plane_does_so_with_it(life: Program) -> None:
    done(life, "kill", "plane")
    said = done(life, "restart", "worker", code=1)
    assert "minigts: host plane is not running; minigts restart plane starts it again\n" in said
    done(life, "start", "plane")
    assert ready(life) == BOTH
    holds(life)


def test_a_copy_of_the_lab_has_the_cluster_with_its_objects(life: Program) -> None:
    done(life, "save", "copy")
    done(life, "restore", "copy", "--lab", "second")
    lab = ("--lab", "second")
    assert ready(life, *lab) == BOTH
    holds(life, *lab)
    done(life, "down", "second")
    holds(life, "--lab", "life")


def test_a_lab_that_was_taken_down_and_kept_has_its_cluster_again(life: Program) -> None:
    done(life, "down", "life", "--keep")
    done(life, "up", "life.yaml")
    assert ready(life) == BOTH
    holds(life)


def test_a_cluster_that_was_left_is_made_anew(life: Program) -> None:
    done(life, "up", "life.yaml", "--overlay", "none")
    assert "overlay none is joined, which has no pods" in done(life, "kubectl", "get", "nodes", code=2)
    done(life, "up", "life.yaml", "--overlay", "kubernetes-flannel")
    assert ready(life) == BOTH
    assert "No resources found" in done(life, "kubectl", "get", "pods")


def test_hosts_come_and_go_and_the_clusters_objects_stay(life: Program) -> None:
    done(life, "kubectl", "create", "configmap", "kept")
    done(life, "add", "host", "more", "worker", "rtt=6ms", "memory=1GB")
    assert ready(life) == {"plane": "Ready", "worker": "Ready", "more": "Ready"}
    done(life, "check", "--quick", "--overlay")
    done(life, "kubectl", "get", "configmap", "kept")
    done(life, "remove", "host", "more")
    assert ready(life) == BOTH
    done(life, "kubectl", "get", "configmap", "kept")


def test_a_host_with_too_little_memory_is_refused_and_nothing_changes(life: Program) -> None:
    said = done(life, "add", "host", "small", "worker", "rtt=6ms", "memory=300MB", code=2)
    assert "needs 400 MB on host small" in said
    assert ready(life) == BOTH


def test_without_the_host_of_the_control_plane_the_others_are_a_new_cluster(life: Program) -> None:
    done(life, "add", "host", "more", "worker", "rtt=6ms", "memory=1GB")
    done(life, "remove", "host", "plane")
    assert ready(life) == {"worker": "Ready", "more": "Ready"}
    assert "not found" in done(life, "kubectl", "get", "configmap", "kept", code=1)


def test_each_group_is_a_cluster(program: Program, tmp_path: Path) -> None:
    (program.directory / "pairs.yaml").write_text(PAIRS)
    done(program, "down", "--all")
    done(program, "up", "pairs.yaml")
    assert ready(program, "--on", "a2") == {"a1": "Ready", "a2": "Ready"}
    assert ready(program, "--on", "b1") == {"b1": "Ready", "b2": "Ready"}
    (program.directory / "servers.yaml").write_text((TOPOLOGIES / "programs" / "servers.yaml").read_text())
    done(program, "kubectl", "--on", "b1", "apply", "-f", "servers.yaml")
    done(program, "kubectl", "--on", "b1", "rollout", "status", "deployment", "servers", "--timeout=90s")
    assert "not found" in done(program, "kubectl", "--on", "a1", "get", "deployment", "servers", code=1)
    done(program, "restart", "b2")
    assert ready(program, "--on", "b1") == {"b1": "Ready", "b2": "Ready"}
    done(program, "check", "--quick", "--overlay")

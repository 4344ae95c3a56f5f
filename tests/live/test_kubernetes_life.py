"""What a cluster over flannel goes through: power cuts with names and policies, and hosts that come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.program import Program

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
TRIES = 20
"""Each takes a second of the lab while nobody answers."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(tmp_path_factory.mktemp("life") / "state", directory=tmp_path_factory.mktemp("here"))
    yield made
    made.run("down", "--all")


def done(program: Program, *arguments: str, code: int = 0) -> str:
    """What it says; it has to end with `code`."""
    started = program.start(*arguments)
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == code, f"{' '.join(arguments)}: {started.returncode}\n{stdout}{stderr}"
    return stdout if code == 0 else stderr


@pytest.fixture(scope="module")
def life(program: Program) -> Program:
    """With the cluster, its pods, and the policy."""
    (program.directory / "life.yaml").write_text(TOPOLOGY)
    (program.directory / "objects.yaml").write_text(OBJECTS)
    done(program, "up", "life.yaml")
    done(program, "kubectl", "apply", "-f", "objects.yaml")
    done(program, "kubectl", "wait", "--for=condition=Ready", "pods", "--all", "--timeout=90s")
    return program


def ready(program: Program) -> dict[str, str]:
    """Of each node what kubectl says of it."""
    lines = done(program, "kubectl", "get", "nodes", "--no-headers").splitlines()
    return {name: state for name, state, *_ in map(str.split, lines)}


def comes_to(program: Program, pod: str, *, let_in: bool) -> bool:
    """Whether that pod's echo requests to `web`, by its name, come to be let in, or come to be not. kube-router sets
    its rules some tenths of a second after it knows of pods, and CoreDNS answers some seconds after it is there."""
    for _ in range(TRIES):
        echo = program.run("exec", f"pod/{pod}", "--", "ping", "-n", "-c", "1", "-W", "1", "web")
        if "(172.31.1." in echo.stdout and (echo.returncode == 0) == let_in:
            return True
    return False


def holds(program: Program) -> dict[str, bool]:
    """Whether names are known and the policy is in force: who is let in, and who is not."""
    done(program, "kubectl", "wait", "--for=condition=Ready", "pods", "--all", "--timeout=90s")
    return {
        "friend": comes_to(program, "friend", let_in=True),
        "stranger": comes_to(program, "stranger", let_in=False),
    }


HELD = {"friend": True, "stranger": True}


def test_names_and_policies_hold_over_flannel(life: Program) -> None:
    assert holds(life) == HELD


def test_they_hold_after_a_workers_power_cut(life: Program) -> None:
    done(life, "restart", "worker")
    assert ready(life) == {"plane": "Ready", "worker": "Ready"}
    assert holds(life) == HELD


def test_hosts_come_and_go_and_the_clusters_objects_stay(life: Program) -> None:
    done(life, "kubectl", "create", "configmap", "kept")
    done(life, "add", "host", "more", "worker", "rtt=6ms", "memory=1GB")
    assert ready(life) == {"plane": "Ready", "worker": "Ready", "more": "Ready"}
    done(life, "check", "--quick", "--overlay")
    done(life, "kubectl", "get", "configmap", "kept")
    done(life, "remove", "host", "more")
    assert ready(life) == {"plane": "Ready", "worker": "Ready"}
    done(life, "kubectl", "get", "configmap", "kept")


def test_a_host_with_too_little_memory_is_refused_and_nothing_changes(life: Program) -> None:
    said = done(life, "add", "host", "small", "worker", "rtt=6ms", "memory=300MB", code=2)
    assert "needs 500 MB on host small" in said
    assert ready(life) == {"plane": "Ready", "worker": "Ready"}

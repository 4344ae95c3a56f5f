"""What becomes of the pods of a worker that has lost its power, by Kubernetes' own timers and in the lab's time: when
others run in their place, how a manifest makes that sooner, and what a StatefulSet waits for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest

from live.program import Program

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(3600)]
PATIENCE_S = 1200.0
"""For what makes a cluster, on a busy machine."""
TOPOLOGY = """\
name: lost
overlay: kubernetes
defaults: {host: {memory: 1GB}, link: {rtt: 10ms, rate: 100mbit}}
chain: {hosts: [plane, other, lost]}
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference: {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [lost]}}]}}
      tolerations: {tolerations}
      containers: [{{name: main, image: minigts/measure, imagePullPolicy: IfNotPresent}}]
---
"""
SOON = """[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]"""
OUT = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
GRACE_S = 50
"""kube-controller-manager's --node-monitor-grace-period. It looks every 5 s; a kubelet tells of itself every 10 s."""
TOLERATED_S = 300
"""The API server's --default-unreachable-toleration-seconds."""


def done(program: Program, *arguments: str) -> str:
    """What it says on stdout; it has to succeed."""
    started = program.start(*arguments)
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, f"{' '.join(arguments)}: {started.returncode}\n{stdout}{stderr}"
    return stdout


def asked(program: Program, *arguments: str) -> Any:
    return json.loads(done(program, "kubectl", "get", *arguments, "-o", "json"))


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def pods(program: Program, name: str) -> Mapping[str, Any]:
    """Its pods by their node."""
    return {each["spec"]["nodeName"]: each for each in asked(program, "pods", "-l", f"app={name}")["items"]}


def ready_s(thing: Any) -> float:
    """When its condition Ready came to be as it is."""
    (condition,) = [each for each in thing["status"]["conditions"] if each["type"] == "Ready"]
    return seconds(condition["lastTransitionTime"])


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, float]]:
    """A cluster whose host `lost` has lost its power, with the pods that were there, and the lab's time of that."""
    made = Program(tmp_path_factory.mktemp("lost") / "state", directory=tmp_path_factory.mktemp("here"))
    (made.directory / "lost.yaml").write_text(TOPOLOGY)
    workloads = [("Deployment", "patient", "[]"), ("Deployment", "quick", SOON), ("StatefulSet", "only", "[]")]
    text = "".join(WORKLOAD.format(kind=kind, name=name, tolerations=soon) for kind, name, soon in workloads)
    (made.directory / "work.yaml").write_text(text)
    done(made, "up", "lost.yaml")
    done(made, "kubectl", "apply", "-f", "work.yaml")
    for kind, name, _ in workloads:
        done(made, "kubectl", "rollout", "status", f"{kind}/{name}", "--timeout=90s")
        assert [*pods(made, name)] == ["lost"]
    done(made, "kill", "lost")
    yield made, float(done(made, "exec", "plane", "--", "date", "+%s.%N"))
    made.run("down", "--all")


def test_a_node_is_lost_once_its_kubelet_has_not_told_of_itself_for_the_grace_period(
    lost: tuple[Program, float], record_property: Callable[[str, object], None]
) -> None:
    program, killed_s = lost
    done(program, "kubectl", "wait", "--for=condition=Ready=Unknown", "node/lost", "--timeout=120s")
    after_s = ready_s(asked(program, "node", "lost")) - killed_s
    record_property("after_s", after_s)
    assert GRACE_S - 10 - 1 <= after_s <= GRACE_S + 10 + 1


@pytest.mark.parametrize(("name", "tolerated_s"), [("quick", 20), ("patient", TOLERATED_S)])
def test_a_deployment_has_another_pod_once_its_toleration_is_over(
    lost: tuple[Program, float], name: str, tolerated_s: int, record_property: Callable[[str, object], None]
) -> None:
    program, killed_s = lost
    done(program, "kubectl", "rollout", "status", f"deployment/{name}", "--timeout=400s")
    found = pods(program, name)
    (new,) = [pod for node, pod in found.items() if node != "lost"]
    after_s = ready_s(new) - killed_s
    record_property("after_s", after_s)
    assert 0 <= after_s - ready_s(asked(program, "node", "lost")) + killed_s - tolerated_s <= 15
    assert "deletionTimestamp" in found["lost"]["metadata"]


def test_a_stateful_sets_pod_is_replaced_once_its_node_is_said_to_be_out_of_service(
    lost: tuple[Program, float], record_property: Callable[[str, object], None]
) -> None:
    program, _ = lost
    (pod,) = pods(program, "only").values()
    assert (pod["spec"]["nodeName"], "deletionTimestamp" in pod["metadata"]) == ("lost", True)
    said_s = float(done(program, "exec", "plane", "--", "date", "+%s.%N"))
    done(program, "kubectl", "taint", "node", "lost", OUT)
    done(program, "kubectl", "rollout", "status", "statefulset/only", "--timeout=90s")
    ((node, pod),) = pods(program, "only").items()
    record_property("after_s", ready_s(pod) - said_s)
    assert node != "lost"
    assert ready_s(pod) - said_s <= 45


def test_a_worker_that_is_started_is_a_node_again_and_has_none_of_the_pods_that_were_replaced(
    lost: tuple[Program, float],
) -> None:
    program, _ = lost
    done(program, "start", "lost")
    done(program, "kubectl", "taint", "node", "lost", f"{OUT}-")
    for name in ("quick", "patient", "only"):
        done(program, "kubectl", "wait", "--for=condition=Ready", "pods", "-l", f"app={name}", "--timeout=60s")
        assert "lost" not in pods(program, name)

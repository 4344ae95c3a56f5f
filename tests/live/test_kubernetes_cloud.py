"""What a cloud gives a cluster: volumes for claims, whose data outlive pods and power cuts, and addresses for Services
of type LoadBalancer, which hosts reach that are no nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.program import Program

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(3600)]
PATIENCE_S = 1200.0
"""For what makes a cluster, on a busy machine."""
TOPOLOGY = """\
name: cloud
overlay: kubernetes-flannel
defaults: {link: {rtt: 10ms, rate: 100mbit}}
hosts:
  client: {memory: 200MB}
  router: {memory: 200MB}
  plane:
    memory: 1GB
    files: [{source: store.yaml, target: /srv/kubernetes/manifests/}]
  worker: {memory: 1GB}
links: [{ends: [client, router]}, {ends: [router, plane]}, {ends: [plane, worker]}]
groups: {cluster: [plane, worker]}
"""
STORE = """\
apiVersion: v1
kind: Service
metadata: {name: store}
spec: {type: LoadBalancer, selector: {app: store}, ports: [{port: 80, targetPort: 12865}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {matchLabels: {app: store}}
      containers:
        - name: main
          image: minigts/measure
          imagePullPolicy: IfNotPresent
          volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
SHARED = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""
ADDRESS = "10.20.1.239"
"""The lowest of the sixteen that are the highest of the control plane's first segment."""


def done(program: Program, *arguments: str) -> str:
    """What it says on stdout; it has to succeed."""
    started = program.start(*arguments)
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, f"{' '.join(arguments)}: {started.returncode}\n{stdout}{stderr}"
    return stdout


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(tmp_path_factory.mktemp("cloud") / "state", directory=tmp_path_factory.mktemp("here"))
    (made.directory / "cloud.yaml").write_text(TOPOLOGY)
    (made.directory / "store.yaml").write_text(STORE)
    (made.directory / "shared.yaml").write_text(SHARED)
    done(made, "up", "cloud.yaml")
    yield made
    made.run("down", "--all")


def comes_true(program: Program, host: str, command: str) -> None:
    """Within ten seconds of the lab."""
    done(program, "exec", host, "--", "sh", "-c", f"for i in $(seq 50); do {command} && exit; sleep 0.2; done; exit 1")


def everybody_reaches(program: Program) -> None:
    for host in ("client", "router", "plane", "worker"):
        comes_true(program, host, f"nc -z -w 2 {ADDRESS} 80")


def nodes_of(program: Program) -> dict[str, str]:
    which = 'jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName}{"\\n"}{end}'
    lines = done(program, "kubectl", "get", "pods", "-l", "app=store", "-o", which).split()
    return dict(line.split("=") for line in lines)


def test_up_returns_when_every_claim_of_a_stateful_set_has_its_volume(cloud: Program) -> None:
    phases = done(cloud, "kubectl", "get", "pvc", "-o", "jsonpath={.items[*].status.phase}")
    assert phases == "Bound Bound"
    assert sorted(nodes_of(cloud).values()) == ["plane", "worker"]


def test_a_service_has_an_address_that_hosts_reach_which_are_no_nodes(cloud: Program) -> None:
    found = "jsonpath={.status.loadBalancer.ingress[0].ip}"
    assert done(cloud, "kubectl", "get", "service", "store", "-o", found) == ADDRESS
    everybody_reaches(cloud)


def test_a_claim_that_no_disk_of_one_node_can_fulfil_is_told_why(cloud: Program) -> None:
    done(cloud, "kubectl", "apply", "-f", "shared.yaml")
    comes_true(cloud, "plane", "kubectl get events | grep 'cannot be ReadWriteMany'")
    done(cloud, "kubectl", "delete", "-f", "shared.yaml")


@pytest.mark.parametrize("host", ["worker", "plane"])
def test_data_and_address_stay_over_a_power_cut(cloud: Program, host: str) -> None:
    (pod,) = [pod for pod, node in nodes_of(cloud).items() if node == host]
    done(cloud, "exec", f"pod/{pod}", "--", "sh", "-c", f"echo of {host} >/data/word")
    done(cloud, "exec", host, "--", "sync")
    done(cloud, "restart", host)
    assert done(cloud, "exec", f"pod/{pod}", "--", "sh", "-c", 'read w </data/word; echo "$w"') == f"of {host}\n"
    everybody_reaches(cloud)


def test_what_is_deleted_leaves_neither_data_nor_address(cloud: Program) -> None:
    done(cloud, "kubectl", "delete", "statefulset/store", "service/store")
    done(cloud, "kubectl", "delete", "pvc", "--all")
    comes_true(cloud, "plane", '[ -z "$(kubectl get pv -o name)" ]')
    for host in ("plane", "worker"):
        assert done(cloud, "exec", host, "--", "ls", "/var/lib/minigts/volumes") == ""
    comes_true(cloud, "plane", f"! ip address | grep {ADDRESS}")
    comes_true(cloud, "plane", '[ -z "$(kubectl get pods -n minigts -l app=volumes -o name)" ]')


def test_a_cluster_that_is_left_leaves_nothing_of_either(cloud: Program) -> None:
    done(cloud, "up", "cloud.yaml", "--overlay", "none")
    for host in ("plane", "worker"):
        done(cloud, "exec", host, "--", "sh", "-c", "! test -e /var/lib/minigts/volumes && ! pgrep python3")

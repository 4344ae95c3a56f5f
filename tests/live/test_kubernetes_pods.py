"""Two nodes with CoreDNS and kube-proxy's mode nftables: a Service answers by its address and by its name, and the
verbs know pods by their names."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from live.conftest import brought_up, quiet
from live.program import TOPOLOGIES, Program
from minigts import overlays
from minigts.foreign import user_text
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
FIGURES = """\
apiVersion: v1
kind: Service
metadata: {name: figures, namespace: kube-system}
spec: {type: NodePort, selector: {k8s-app: kube-dns}, ports: [{port: 80, targetPort: 9153, nodePort: 30081}]}
"""
"""CoreDNS tells of itself there, by HTTP."""
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
def layer(cluster: Lab, minigts: Program) -> bytes:
    """The files of the image `minigts/measure`, as a tar archive."""
    measure = minigts.directory / "measure.tar"
    cluster.provider.run("plane", ["bash", "-euc", EXPORT], timeout_s=LIMIT_S)
    cluster.provider.get("plane", PurePosixPath("/root/measure.tar"), measure)
    with tarfile.open(measure) as archive:
        largest = max(archive.getmembers(), key=lambda member: member.size)
        content = archive.extractfile(largest)
        assert content is not None
        return content.read()


@pytest.fixture(scope="module")
def greeting(minigts: Program, layer: bytes) -> str:
    """A pod of an image that was loaded, on the worker, from a file of this machine."""
    (minigts.directory / "toolbox.tar").write_bytes(layer)
    (minigts.directory / "greeting.yaml").write_text(GREETING)
    minigts.succeeds("load", "toolbox.tar")
    minigts.succeeds("kubectl", "apply", "-f", "greeting.yaml")
    minigts.succeeds("kubectl", "-n", "shop", "wait", "--for=condition=Ready", "pod/greeting", "--timeout=60s")
    return "pod/shop/greeting"


def test_an_image_that_a_node_has_is_not_loaded_again(minigts: Program, greeting: str) -> None:
    assert "every host had it already" in minigts.run("load", "toolbox.tar").stderr


def image_archive(where: Path, name: str, layer: bytes, *, oci: bool) -> None:
    """What `docker save NAME` writes: before version 25 of Docker files by their ids, since then an OCI layout, too."""
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": ["/usr/bin/sleep", "5000"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    config_digest = hashlib.sha256(config).hexdigest()
    files = {"manifest.json": b"", f"{config_digest}.json": config, "layer/layer.tar": layer}
    if oci:
        files = {"manifest.json": b"", f"blobs/sha256/{config_digest}": config, f"blobs/sha256/{digest}": layer}
        kind = "application/vnd.oci.image"
        described = {"mediaType": f"{kind}.config.v1+json", "digest": f"sha256:{config_digest}", "size": len(config)}
        layers = [{"mediaType": f"{kind}.layer.v1.tar", "digest": f"sha256:{digest}", "size": len(layer)}]
        manifest = {"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", "config": described, "layers": layers}
        text = json.dumps(manifest).encode()
        manifest_digest = hashlib.sha256(text).hexdigest()
        names = {"io.containerd.image.name": f"docker.io/library/{name}", "org.opencontainers.image.ref.name": "1.0"}
        entry = {"mediaType": f"{kind}.manifest.v1+json", "digest": f"sha256:{manifest_digest}", "size": len(text)}
        index = {"schemaVersion": 2, "manifests": [{**entry, "annotations": names}]}
        files[f"blobs/sha256/{manifest_digest}"] = text
        files["index.json"] = json.dumps(index).encode()
        files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    settings, content = [*files][1:3]
    files["manifest.json"] = json.dumps([{"Config": settings, "RepoTags": [name], "Layers": [content]}]).encode()
    with tarfile.open(where, "w") as archive:
        for place, text in files.items():
            member = tarfile.TarInfo(place)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))


@pytest.mark.parametrize("oci", [False, True], ids=["older", "oci"])
def test_an_image_of_docker_save_keeps_its_name(minigts: Program, layer: bytes, oci: bool) -> None:
    name = "newer" if oci else "older"
    image_archive(minigts.directory / f"{name}.tar", f"{name}:1.0", layer, oci=oci)
    minigts.succeeds("load", f"{name}.tar")
    minigts.succeeds("kubectl", "run", name, f"--image={name}:1.0", "--image-pull-policy=Never")
    minigts.succeeds("kubectl", "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


def test_forward_leads_to_a_port_of_a_node(cluster: Lab, minigts: Program) -> None:
    (minigts.directory / "figures.yaml").write_text(FIGURES)
    minigts.succeeds("kubectl", "apply", "-f", "figures.yaml")
    cluster.provider.run("worker", ["sleep", "3"], timeout_s=LIMIT_S)  # kube-proxy sets its rules once a second
    started = minigts.start("forward", "worker:30081")
    try:
        assert started.stdout is not None
        address = started.stdout.readline().strip()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_S) as answer:
            assert b"coredns_build_info" in answer.read()
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=LIMIT_S)


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
    token = user_text(cluster.provider.run("plane", ["cat", "/etc/kubernetes/token"], timeout_s=LIMIT_S).stdout).strip()
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

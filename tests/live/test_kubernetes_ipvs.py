"""kube-proxy's mode ipvs: the kernel has a virtual server for each Service, it answers, and leaving takes all away."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from live import test_overlays
from live.conftest import brought_up, quiet
from live.program import TOPOLOGIES
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(1800)]
LIMIT_S = 300.0
TOPOLOGY = """\
name: ipvs
kubernetes: {proxy: ipvs}
defaults: {host: {memory: 1GB}}
pair: {hosts: [plane, worker], link: {rtt: 10ms, rate: 100mbit}}
"""
PORT = 12865
STATE = "cat /proc/net/ip_vs | tail -n +4; ipset list -name; grep . /proc/sys/net/ipv4/vs/*"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    plan = parse(TOPOLOGY, "ipvs.yaml", known_overlays=overlays.known_names(), time="virtual")
    yield from brought_up(plan, "ipvs", tmp_path_factory)


def on(lab: Lab, host: str, *argv: str, stdin: str = "") -> str:
    return user_text(lab.provider.run(host, [*argv], timeout_s=LIMIT_S, stdin=stdin.encode()).stdout)


def hexadecimal(address: str) -> str:
    return "".join(f"{int(part):02X}" for part in address.split("."))


def virtual_servers(lab: Lab, host: str) -> dict[str, list[str]]:
    """Address and port of each, with those of its real servers, in hexadecimal as /proc/net/ip_vs has them."""
    servers: dict[str, list[str]] = {}
    for line in on(lab, host, "cat", "/proc/net/ip_vs").splitlines():
        if found := re.match(r"TCP +([0-9A-F:]+) rr", line):
            now = servers.setdefault(found[1], [])
        elif found := re.match(r" +-> ([0-9A-F]+:[0-9A-F]+) +Masq ", line):
            now.append(found[1])
    return servers


def test_a_virtual_server_leads_to_the_pods_of_a_service_and_leaving_takes_it_away(lab: Lab) -> None:
    before = {host: on(lab, host, "sh", "-c", STATE) for host in ("plane", "worker")}
    state = test_overlays.state(lab)
    ends = overlays.join(lab, "kubernetes", quiet)
    on(lab, "plane", "kubectl", "apply", "-f", "-", stdin=(TOPOLOGIES / "programs" / "servers.yaml").read_text())
    on(lab, "plane", "kubectl", "rollout", "status", "deployment", "servers", "--timeout=90s")
    address = on(lab, "plane", "kubectl", "get", "service", "servers", "-o", "jsonpath={.spec.clusterIP}")
    pods = on(lab, "plane", "kubectl", "get", "pods", "-l", "app=servers", "-o", "jsonpath={.items[*].status.podIP}")
    for end in ends.values():
        for prefix in (end.network, ()):
            again = f"for i in $(seq 30); do nc -z -w 2 {address} {PORT} && exit; sleep 0.1; done; exit 1"
            on(lab, end.host, *prefix, "bash", "-c", again)
        real = virtual_servers(lab, end.host)[f"{hexadecimal(address)}:{PORT:04X}"]
        assert sorted(real) == sorted(f"{hexadecimal(pod)}:{PORT:04X}" for pod in pods.split())
        assert "KUBE-SVC" not in on(lab, end.host, "iptables-save")

    overlays.leave(lab, quiet)
    assert test_overlays.state(lab) == state
    assert {host: on(lab, host, "sh", "-c", STATE) for host in before} == before

"""`minigts netlab` on kernels: what netlab starts by containerlab, Docker and sudo is done in a lab."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(600)]
FILE = """name: t
prefix: "clab"
topology:
  nodes:
    r1:
      mgmt-ipv4: 192.168.121.101
      kind: linux
      image: python:3.13-alpine
      binds:
      - node_files/r1/initial:/etc/config/01-initial.sh
      - node_files/r1/bird:/etc/bird/bird.conf
    h_1:
      mgmt-ipv4: 192.168.121.102
      kind: linux
      image: python:3.13-alpine
      binds:
      - node_files/h_1/dnsmasq:/etc/dnsmasq.conf
  links:
  - endpoints: ["r1:eth1", "h_1:eth1"]
  - type: dummy
    endpoint: {node: r1, interface: eth2}
"""
ROUTER = """#!/bin/sh
set -e
ip link set eth1 down
ip link set eth1 up
ip address add 172.16.0.1/24 dev eth1
ip address add 172.16.1.1/24 dev eth2
"""
HOST = """set -e
ip address add 172.16.0.2/24 dev eth1
ip route add 172.16.1.0/24 via 172.16.0.1
"""
BIRD = """log stderr all;
protocol device { }
protocol static { ipv4; route 192.0.2.0/24 via 172.16.0.2; }
"""
NAMES = """domain-needed
address=/served.test/192.0.2.7
"""
STAND_IN = """#!/bin/sh
set -e
echo "asked: $*"
containerlab version >/dev/null
groups | grep -qw clab_admins
sudo modprobe vrf
containerlab deploy --reconfigure -t clab.yml
docker ps --format json
sudo ip netns exec clab-t-h_1 sh node_files/h_1/initial
docker exec clab-t-r1 /etc/config/01-initial.sh
docker exec clab-t-h_1 ip -brief address
docker exec clab-t-h_1 ping -q -c 2 172.16.1.1
docker exec clab-t-h_1 sh -c 'ping -q -c 1 -W 1 198.51.100.1 || true'
docker exec clab-t-r1 sh -c 'until birdc show route 2>/dev/null | grep 192.0.2; do sleep 1; done'
docker exec clab-t-h_1 dig +short +retry=5 @127.0.0.1 served.test
docker exec clab-t-h_1 sh -c 'exit 7' || echo "code $?"
sudo reboot || echo refused
containerlab destroy --cleanup -t clab.yml
"""
"""In netlab's place: it starts what netlab starts."""


def test_netlabs_own_scripts_make_the_network(program: Program, traces: Traces, tmp_path: Path) -> None:
    files = {
        "clab.yml": FILE,
        "node_files/r1/initial": ROUTER,
        "node_files/r1/bird": BIRD,
        "node_files/h_1/initial": HOST,
        "node_files/h_1/dnsmasq": NAMES,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    stand_in = tmp_path / "bin" / "netlab"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    with_it = {**program.environment, "PATH": f"{stand_in.parent}:{os.environ['PATH']}"}
    done = replace(program, directory=tmp_path, environment=with_it).run("netlab", "up")
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert said.startswith("asked: up -p clab\n")
    assert '"Names": "clab-t-r1"' in said
    assert "172.16.0.2/24" in said
    assert "10.20." not in said, "minigts' own addresses are gone"
    assert "2 packets transmitted, 2 received" in said
    assert "1 packets transmitted, 0 received" in said, "a default route leads to nothing, as one for management does"
    assert "192.0.2.0/24" in said, "BIRD runs, with netlab's configuration"
    assert "192.0.2.7\n" in said, "dnsmasq runs, with netlab's configuration"
    assert "code 7" in said
    assert "refused" in said
    assert not traces.left()

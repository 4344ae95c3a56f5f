"""A containerlab file with nodes of kind `frr`: the addresses of its configurations are there, and routes are found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.formats import detect, network
from minigts.lab import Lab
from minigts.topology.read.load import load

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched("tools/minigts/formats/containerlab*.py"),
]
FILE = """\
name: row
topology:
  kinds: {frr: {extras: {frr: {daemons: [ospfd]}}}}
  nodes:
    r1: {kind: frr, startup-config: r1.conf}
    r2: {kind: frr, startup-config: r2.conf}
    pc: {kind: linux, exec: [ip addr add 192.168.2.2/24 dev eth1, ip route add 192.168.0.0/16 via 192.168.2.1]}
  links: [{endpoints: ["r1:eth1", "r2:eth1"]}, {endpoints: ["r2:eth2", "pc:eth1"]}]
"""
CONFIGURATION = """\
interface eth1
 ip address 192.168.1.{number}/24
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
{more}router ospf
 network 192.168.0.0/16 area 0
"""


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("row")
    (folder / "r1.conf").write_text(CONFIGURATION.format(number=1, more=""))
    (folder / "r2.conf").write_text(CONFIGURATION.format(number=2, more="interface eth2\n ip address 192.168.2.1/24\n"))
    (folder / "row.clab.yml").write_text(FILE)
    read = detect.read(FILE, str(folder / "row.clab.yml"))
    (folder / "row.yaml").write_text(network.text(read))
    plan = load(folder / "row.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


def said(lab: Lab, host: str, script: str) -> str:
    return user_text(lab.provider.run(host, ["sh", "-c", script], timeout_s=120.0).stdout)


def test_the_routers_find_each_others_networks(row: Lab) -> None:
    said(row, "r1", "for n in $(seq 60); do ip route show proto ospf | grep -q 192.168.2.0/24 && exit; sleep 0.5; done")
    assert "192.168.2.0/24" in said(row, "r1", "vtysh -c 'show ip route ospf'")
    assert "0% packet loss" in said(row, "pc", "ping -c 3 192.168.1.1")


def test_only_the_daemons_of_the_file_run_and_the_links_are_as_declared(row: Lab) -> None:
    running = said(row, "r2", "ps -e -o comm").split()
    assert {"zebra", "mgmtd", "staticd", "ospfd"} <= {*running}
    assert "bgpd" not in running
    assert measure.certify(row, quiet).ok

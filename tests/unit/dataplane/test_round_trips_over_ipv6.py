"""Measuring over IPv6: which overlays go over it, where they are refused, and what the plan predicts of them."""

from __future__ import annotations

import importlib.util
import socket
import struct
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from minigts import overlays, paths
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments.commands import outer_mtu
from minigts.overlays import catalogue
from minigts.overlays.host_file import facts_for
from minigts.tools import TOOLS
from minigts.tools.base import PathUnderTest
from minigts.tools.payload import carried_mbit, datagram_bytes
from minigts.topology import overlay_names
from minigts.topology.read.load import load, parse

TOPOLOGIES = paths.project_root() / "topologies"
SIX = load(TOPOLOGIES / "ipv6.yaml", time="virtual")
OVER_IPV6 = [name for name in overlays.known_names() if overlay_names.needs_ipv6(name)]
EXPERIMENT = """name: x
title: X
topology: {topology}
overlays: [none, {overlay}]
seed: 1
repetitions: 1
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-each]}}
"""
AN_ADDRESS = {"ipv4": "10.255.0.2", "ipv6": "fd6d:6967:7473:ffff::2"}


def way(family: str, mtu: int = 1500, outer: int = 1500) -> PathUnderTest:
    return PathUnderTest(AN_ADDRESS[family], mtu, outer, SIX.path("ams", "bra"))


def test_there_are_the_plain_hosts_and_both_floors() -> None:
    assert OVER_IPV6 == ["none-v6", "vxlan-bare-v6", "wireguard-bare-v6"]


@pytest.mark.parametrize(
    ("name", "mtu"), [("none-v6", 1500), ("vxlan-bare-v6", 1430), ("wireguard-bare-v6", 1420), ("vxlan-bare", 1450)]
)
def test_an_mtu_leaves_room_for_the_outer_header(name: str, mtu: int) -> None:
    assert overlays.find(name).data_path.mtu_over(1500) == mtu


def test_what_vxlan_makes_of_a_full_packet_fills_the_link_over_either() -> None:
    assert outer_mtu(1430, 1500, {"vxlan6"}) == 1500
    assert outer_mtu(1450, 1500, {"vxlan"}) == 1500
    assert outer_mtu(1000, 1500, {"vxlan6"}) == 1070


@pytest.mark.parametrize(("family", "payload"), [("ipv4", 1448), ("ipv6", 1428)])
def test_tcp_s_ceiling_knows_which_header_is_inside(family: str, payload: int) -> None:
    tool = TOOLS["iperf3-tcp"]
    assert tool.predicted(tool.options(), way(family)) == pytest.approx(50 * payload / 1514)


@pytest.mark.parametrize(
    ("datagram", "family", "payload", "frames_bytes"),
    [
        ("fit", "ipv4", 1472, 1514),
        ("fit", "ipv6", 1452, 1514),
        ("1400B", "ipv6", 1400, 1462),
        # Two fragments, of 1448 and of 1452 bytes, UDP's header in the first, with 62 in front of each.
        ("2packets", "ipv6", 1448 + 1452 - 8, 1448 + 1452 + 2 * 62),
    ],
)
def test_a_datagram_s_size_and_frames_are_the_family_s(
    datagram: str, family: str, payload: int, frames_bytes: int
) -> None:
    tested = way(family)
    assert datagram_bytes(datagram, 1500, tested.family) == payload
    assert carried_mbit(datagram, tested) == pytest.approx(50 * payload / frames_bytes)


@pytest.mark.parametrize("tool", ["netperf-rr", "netperf-stream", "iperf3-tcp", "iperf3-udp", "ping"])
def test_every_tool_asks_the_ipv6_address_and_netperf_is_told_so(tool: str) -> None:
    argv = TOOLS[tool].argv(TOOLS[tool].options(), way("ipv6"))
    assert AN_ADDRESS["ipv6"] in argv
    assert "-4" not in argv
    assert ("-6" in argv) == tool.startswith("netperf")


@pytest.mark.parametrize("name", OVER_IPV6)
def test_a_lab_without_ipv6_refuses_it_before_anything_starts(name: str) -> None:
    said = CliRunner().invoke(app, ["up", str(TOPOLOGIES / "pair.yaml"), "--overlay", name])
    assert said.exit_code == 2
    assert f"overlay '{name}' uses IPv6, and topology pair has none: write `ipv6: true` there" in said.stderr


@pytest.mark.parametrize("name", ["swarm-v6", "calico-v6", "flannel-wireguard-v6"])
def test_what_goes_over_ipv4_alone_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    plain = name.removesuffix("-v6")
    why = f"overlay {plain} uses IPv4 alone, since its hosts and programs know each other by IPv4 addresses"
    able = "overlays over IPv6 are none-v6, vxlan-bare-v6, wireguard-bare-v6"
    said = CliRunner().invoke(app, ["up", str(TOPOLOGIES / "ipv6.yaml"), "--overlay", name])
    assert (said.exit_code, f"{why}; {able}" in said.stderr) == (2, True)
    file = tmp_path / "t.yaml"
    file.write_text(f"name: x\nipv6: true\noverlay: {name}\npair: {{}}\n")
    with pytest.raises(InputError, match=f"t.yaml:3: overlay: {why}"):
        load(file, known_overlays=overlays.known_names())
    own = tmp_path / "own.yaml"
    own.write_text(EXPERIMENT.format(topology=TOPOLOGIES / "ipv6.yaml", overlay=name))
    said = CliRunner().invoke(app, ["run", str(own), "--dry-run"])
    assert (said.exit_code, why in said.stderr) == (2, True)


def test_a_topology_whose_own_overlay_needs_it_says_so_by_line() -> None:
    with pytest.raises(InputError, match=r"t\.yaml:2: overlay: overlay 'none-v6' uses IPv6, and the topology has none"):
        parse("name: x\noverlay: none-v6\npair: {}\n", "t.yaml", known_overlays=overlays.known_names())


def test_a_name_that_is_none_at_all_gets_no_such_reason() -> None:
    assert overlay_names.why_unknown("swrm-v6", overlays.known_names()) is None
    assert overlay_names.why_unknown("swarm", overlays.known_names()) is None
    assert overlay_names.why_unknown("none-v6", overlays.known_names()) is None


def test_phases_have_the_hosts_ipv6_addresses_in_the_order_of_the_others() -> None:
    facts = facts_for(SIX, SIX.host("bra"), overlays.find("vxlan-bare-v6"), "", "docker")
    assert facts.address_v6 == "fd6d:6967:7473:ffff::2"
    assert [(peer.address, peer.address_v6) for peer in facts.peers] == [
        (f"10.255.0.{number}", f"fd6d:6967:7473:ffff::{number}") for number in (1, 3, 4, 5, 6)
    ]


def test_a_variant_s_name_says_what_it_goes_over(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "overlay.yaml").write_text(
        "description: x\nvariants:\n  a: {encapsulation: vxlan6}\n  b-v6: {encapsulation: vxlan}\n"
    )
    with pytest.raises(InputError, match=r"(?s)3: .*ends in v6.*4: .*ends in v6"):
        catalogue.read_folder(folder)


@pytest.fixture
def configure() -> ModuleType:
    """What gives WireGuard's interfaces their peers."""
    place = paths.project_root() / "provision" / "overlays" / "wireguard.py"
    spec = importlib.util.spec_from_file_location("configure", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("family", "length", "kind"), [("ipv4", 16, socket.AF_INET), ("ipv6", 28, socket.AF_INET6)])
def test_a_peer_s_endpoint_is_the_kernel_s_socket_address(
    configure: ModuleType, family: str, length: int, kind: int
) -> None:
    made = configure.endpoint(AN_ADDRESS[family], 51820)
    assert len(made) == length
    assert struct.unpack_from("=H", made) == (kind,)
    assert struct.unpack_from("!H", made, 2) == (51820,)
    assert socket.inet_pton(kind, AN_ADDRESS[family]) in made

"""A host's way out of its lab: who may have one, what is set on the host, which frames leave. No hosts, no network."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from minigts import paths
from minigts.cli.app import app
from minigts.dataplane import interfaces
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers import gateway, registry
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.provider import launch_of
from minigts.providers.uml.run import slirp
from minigts.providers.uml.run.command_line import KernelPort
from minigts.providers.vagrant import prerequisites
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse
from minigts.topology.routes.addresses import GATEWAY_MAC, GATEWAY_NAME_SERVER

TOPOLOGY = """
name: out
time: real
hosts: {ams: {gateway: true}, bra: }
links: [{ends: [ams, bra], rtt: 4ms}]
"""
WITHOUT = TOPOLOGY.replace("gateway: true", "gateway: false")
PLAN, NONE = parse(TOPOLOGY, "out.yaml"), parse(WITHOUT, "out.yaml")
PATIENCE_S = 20


@dataclass(frozen=True)
class Frame:
    """What a test sends, as bytes: Ethernet, IPv4, and the ports of TCP or UDP."""

    to: str = "198.51.100.1"
    port: int = 80
    kind: int = 0x0800
    first: int = 0x45
    protocol: int = 6
    fragment: int = 0

    def encode(self) -> bytes:
        header = struct.pack("!12xH", self.kind)
        to = IPv4Address(self.to).packed
        packet = struct.pack("!BBHHHBBH4x4s", self.first, 0, 40, 1, self.fragment, 64, self.protocol, 0, to)
        return header + packet + struct.pack("!HH16x", 40000, self.port)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(),
        Frame(to="10.0.0.1", protocol=17, port=4711),
        Frame(to="192.168.1.1", protocol=1),
        Frame(fragment=0x2000),
        Frame(to=GATEWAY_NAME_SERVER, protocol=17, port=53),
        Frame(to=GATEWAY_NAME_SERVER, protocol=6, port=53),
        Frame(kind=0x0806),
    ],
)
def test_a_frame_leaves(frame: Frame) -> None:
    assert slirp.may_leave(frame.encode())


@pytest.mark.parametrize(
    "frame",
    [
        Frame(to="127.0.0.1"),
        Frame(to="127.99.0.1", protocol=17),
        Frame(to="0.0.0.0"),
        Frame(to="169.254.169.254"),
        Frame(to="169.254.77.2"),
        Frame(to=GATEWAY_NAME_SERVER, port=22),
        Frame(to=GATEWAY_NAME_SERVER, protocol=1, port=53),
        Frame(to=GATEWAY_NAME_SERVER, protocol=17, port=53, fragment=0x2000),
        Frame(to=GATEWAY_NAME_SERVER, protocol=17, port=53, fragment=0x0001),
        Frame(to="224.0.0.1", protocol=17),
        Frame(to="255.255.255.255", protocol=17),
        Frame(first=0x46),
        Frame(first=0x65),
        Frame(kind=0x86DD),
        Frame(kind=0x8100),
        Frame(kind=0x88F8),
    ],
)
def test_a_frame_stays(frame: Frame) -> None:
    """Loopback and this machine itself, what is on its links, header options behind which a port might hide, IPv6."""
    assert not slirp.may_leave(frame.encode())


@pytest.mark.parametrize("length", range(38))
def test_a_frame_that_is_cut_off_is_refused_in_silence(length: int) -> None:
    assert not slirp.may_leave(Frame(to=GATEWAY_NAME_SERVER, port=53).encode()[:length])


@pytest.fixture
def filtered() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The filter as it runs, confined, between two sockets of the test's: a kernel's and a stack's."""
    with ExitStack() as stack:
        kernel, its_kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        outside, its_outside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = (its_kernel.fileno(), its_outside.fileno())
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", slirp.__name__, *map(str, descriptors)],
            pass_fds=descriptors,
            env={"PYTHONPATH": str(paths.import_root())},
        )
        stack.callback(started.wait, PATIENCE_S)
        for one in (kernel, outside):
            one.settimeout(PATIENCE_S)
            stack.callback(one.close)
        its_kernel.close()
        its_outside.close()
        yield kernel, outside


def test_the_filter_passes_frames_both_ways_but_for_those_that_stay(
    filtered: tuple[socket.socket, socket.socket],
) -> None:
    kernel, outside = filtered
    for frame in (Frame(to="127.0.0.1"), Frame(to="198.51.100.7")):
        kernel.send(frame.encode())
    assert outside.recv(2000) == Frame(to="198.51.100.7").encode()
    outside.send(b"an answer of any kind")
    assert kernel.recv(2000) == b"an answer of any kind"


@pytest.mark.parametrize("first", [0, 1])
def test_the_filter_ends_when_either_side_does(filtered: tuple[socket.socket, socket.socket], first: int) -> None:
    filtered[first].close()
    assert filtered[1 - first].recv(2000) == b""


def test_a_plan_has_a_way_out_only_where_it_is_said() -> None:
    assert [host.name for host in PLAN.ways_out] == ["ams"]
    assert "gateway" not in plan_json(NONE)
    assert Plan.model_validate_json(plan_json(PLAN)) == PLAN


def test_defaults_and_shorthands_give_it_and_a_host_refuses_it() -> None:
    text = "name: x\ntime: real\ndefaults: {host: {gateway: true}}\nhosts: {a: , b: {gateway: false}}\n"
    plan = parse(f"{text}links: [{{ends: [a, b], rtt: 4ms}}]\n", "x.yaml")
    assert [host.name for host in plan.ways_out] == ["a"]


def test_virtual_time_refuses_it_and_says_why() -> None:
    with pytest.raises(InputError, match=r"out.yaml:4: hosts.ams.gateway: .* does not follow the lab's clock; write"):
        parse(TOPOLOGY.replace("time: real", "time: virtual"), "out.yaml")
    with pytest.raises(ValueError, match="ams: a way out exists only in real time"):
        Plan.model_validate_json(plan_json(PLAN).replace('"time": "real"', '"time": "virtual"'))


def test_the_host_gets_an_interface_a_route_and_a_name_server() -> None:
    script = interfaces.script(PLAN, PLAN.host("ams"))
    assert "route replace default via 169.254.77.2 src 169.254.77.100" in script
    assert f"echo nameserver {GATEWAY_NAME_SERVER} >/etc/resolv.conf" in script
    assert GATEWAY_MAC in script


def test_no_other_host_gets_anything() -> None:
    script = interfaces.script(PLAN, PLAN.host("bra"))
    assert script == interfaces.script(NONE, NONE.host("bra"))
    assert "default via" not in interfaces.script(NONE, NONE.host("ams"))


def test_the_last_port_of_the_host_s_kernel_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "program", lambda: "/usr/bin/slirp4netns")
    ams, bra = launch_of(PLAN, Image(Path("image")), Path("boot"), {}).machines
    assert (ams.way_out, ams.ports[1:]) == ("/usr/bin/slirp4netns", (KernelPort(GATEWAY_MAC),))
    assert (bra.way_out, len(bra.ports)) == ("", 1)


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "program", lambda: None)


@pytest.mark.usefixtures("not_installed")
def test_without_the_program_up_says_what_to_install(tmp_path: Path) -> None:
    provider: Any = registry.make("uml", tmp_path, "real")
    with pytest.raises(EnvironmentLacks, match=r"ams with `gateway: true`: .* apt-get install slirp4netns"):
        provider.up(PLAN, lambda _: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("not_installed")
def test_without_the_program_a_lab_without_a_way_out_lacks_nothing() -> None:
    assert gateway.require(NONE) == ""
    assert gateway.finding().state == "ok"
    assert "apt-get install slirp4netns" in gateway.finding().meaning


def test_vagrant_by_hand_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentLacks, match="ams with `gateway: true`: provider vagrant does not support a way out, since"
    ):
        prerequisites.define(PLAN, tmp_path)


@pytest.mark.parametrize(("text", "said"), [(TOPOLOGY, True), (WITHOUT, False)])
def test_plan_says_that_there_is_one_and_through_whom(tmp_path: Path, text: str, said: bool) -> None:
    (tmp_path / "out.yaml").write_text(text)
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "out.yaml")])
    assert done.exit_code == 0
    assert ("has a way out to the networks of this machine, through ams" in done.stdout) is said

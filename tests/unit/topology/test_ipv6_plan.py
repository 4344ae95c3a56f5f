"""IPv6 beside IPv4: addresses and routes of the plan, what they become on a host; without it nothing is new."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.dataplane import interfaces
from minigts.dataplane.round_trip import echo_ms
from minigts.errors import HostFailed
from minigts.fidelity import shown_settings
from minigts.lab import Record
from minigts.providers.vagrant import definition
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
TEXT = """name: x
{ipv6}
hosts: {{a: , b: , c: }}
switches: {{s: }}
links:
- {{ends: [a, s], rtt: 2ms, rate: 50mbit}}
- {{ends: [s, b], rtt: 2ms, rate: 50mbit}}
- {{ends: [b, c], rtt: 10ms, rate: 50mbit, loss: 1%}}
"""
WITHOUT = [path for path in sorted(TOPOLOGIES.glob("*.yaml")) if path.stem not in ("ipv6", "ipv6-only", "hops")]


def plan(written: str = "ipv6: true", text: str = TEXT) -> Plan:
    return parse(text.format(ipv6=written), "t.yaml")


@pytest.mark.parametrize("file", WITHOUT, ids=lambda path: str(path.stem))
def test_a_plan_without_it_says_nothing_of_it(file: Path) -> None:
    made = load(file)
    assert made.ipv6 is None
    assert '"ipv6"' not in plan_json(made)
    assert Plan.model_validate_json(plan_json(made)) == made


def test_written_false_is_as_not_written() -> None:
    assert plan_json(plan("ipv6: false")) == plan_json(plan(""))


def test_beside_each_address_stands_one_with_the_same_number() -> None:
    made = plan()
    assert made.ipv6 is not None
    shown = {host.name: (host.address, *(port.address for port in host.ports)) for host in made.ipv6.hosts}
    assert shown == {
        "a": ("fd6d:6967:7473:ffff::1", "fd6d:6967:7473::1"),
        "b": ("fd6d:6967:7473:ffff::2", "fd6d:6967:7473::2", "fd6d:6967:7473:1::1"),
        "c": ("fd6d:6967:7473:ffff::3", "fd6d:6967:7473:1::2"),
    }
    assert [(link.link, link.subnet) for link in made.ipv6.links] == [
        ("a-s", "fd6d:6967:7473::/64"),
        ("s-b", "fd6d:6967:7473::/64"),
        ("b-c", "fd6d:6967:7473:1::/64"),
    ]
    assert [port.peer_address for host in made.ipv6.hosts for port in host.ports] == [
        None,
        None,
        "fd6d:6967:7473:1::2",
        "fd6d:6967:7473:1::1",
    ]
    assert made.ipv6_of("s") is None


def test_routes_lead_where_those_of_ipv4_lead() -> None:
    made = load(TOPOLOGIES / "ipv6.yaml")
    for host in made.hosts:
        beside = made.ipv6_of(host.name)
        assert beside is not None
        routes, routes4 = made.ipv6_routes_of(host.name), made.routes_of(host.name)
        assert len(routes) == len(routes4)
        near = {port.peer_address: port.name for port in beside.ports}
        near4 = {port.peer_address: port.name for port in host.ports}
        assert [near[route.via] for route in routes] == [near4[route.via] for route in routes4]
        assert {route.source for route in routes} == {beside.address}


def test_of_a_block_of_ones_own() -> None:
    made = plan("ipv6: 2001:db8:7::/48").ipv6
    assert made is not None
    block = IPv6Network("2001:db8:7::/48")
    assert all(IPv6Address(host.address) in block for host in made.hosts)
    assert all(IPv6Network(link.subnet).subnet_of(block) for link in made.links)


def test_it_is_written_and_read_back() -> None:
    made = plan()
    assert Plan.model_validate_json(plan_json(made)) == made


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("hosts", 0, "address"), "fd6d:6967:7473:ffff::9"),
        (("hosts", 0, "address"), "fd6d:6967:7473:ffff:0::1"),
        (("hosts", 0, "address"), "fe80::1%eth0; reboot"),
        (("hosts", 0, "name"), "zzz"),
        (("hosts", 1, "ports", 0, "name"), "eth7"),
        (("links", 0, "subnet"), "2001:db8::/64"),
        (("prefix",), "fd00::/48"),
        (("prefix",), "ff02::/48"),
        (("prefix",), "'; reboot"),
        (("hosts",), []),
        (("links",), []),
    ],
)
def test_a_plan_that_has_it_otherwise_is_refused(place: tuple[str | int, ...], value: object) -> None:
    document = json.loads(plan_json(plan()))
    part: Any = document["ipv6"]
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(ValidationError):
        Plan.model_validate(document)


def script(made: Plan, name: str) -> list[str]:
    return interfaces.script(made, made.machine(name)).splitlines()


def test_a_host_of_a_lab_with_it_forwards_and_uses_its_addresses_at_once() -> None:
    lines = script(plan(), "b")
    assert "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding" in lines
    assert "echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad" in lines
    assert not [line for line in lines if "echo 1" in line and "disable_ipv6" in line]
    assert [line for line in lines if "fd6d" in line and line.startswith(("address", "route"))] == [
        "address replace fd6d:6967:7473:ffff::2/128 dev lo nodad",
        "address replace fd6d:6967:7473::2/64 dev eth1 nodad",
        "address replace fd6d:6967:7473:1::1/64 dev eth2 nodad",
        "route replace fd6d:6967:7473:ffff::1/128 via fd6d:6967:7473::1 src fd6d:6967:7473:ffff::2",
        "route replace fd6d:6967:7473:ffff::3/128 via fd6d:6967:7473:1::2 src fd6d:6967:7473:ffff::2",
    ]
    accept, disable = (f"echo 0 >/proc/sys/net/ipv6/conf/eth2/{name}" for name in ("accept_dad", "disable_ipv6"))
    assert lines.index(accept) < lines.index(disable)


def test_names_have_both_addresses() -> None:
    (hosts,) = (
        line for line in interfaces.script(plan(), plan().host("a")).split(">/etc/hosts") if "localhost" in line
    )
    for line in ("10.255.0.3 c", "fd6d:6967:7473:ffff::3 c"):
        assert f"\n{line}\n" in hosts


def test_neighbours_on_a_link_that_loses_are_known_beforehand_and_elsewhere_are_found() -> None:
    """As ARP goes round a link's loss."""
    assert [line for line in script(plan(), "b") if line.startswith("neighbour")] == [
        "neighbour replace fd6d:6967:7473:1::2 lladdr 02:6d:67:00:02:02 dev eth2 nud permanent"
    ]
    assert [line for line in script(plan(), "a") if line.startswith("neighbour")] == []


def test_a_switch_s_ports_stay_without() -> None:
    lines = script(plan(), "s")
    assert len([line for line in lines if "disable_ipv6" in line and "echo 1" in line]) == 2
    assert not [line for line in lines if "net.ipv6" in line]


def test_a_script_without_it_is_what_it_was() -> None:
    lines = interfaces.script(plan(""), plan("").host("b"))
    assert "fd6d" not in lines
    assert "net.ipv6" not in lines
    assert lines.count("echo 1 >/proc/sys/net/ipv6/conf/") == 2


@pytest.mark.parametrize(("target", "hops"), [("bra", 1), ("mil", 3), ("lon", 5)])
def test_an_echo_takes_20_bytes_more_on_each_wire_there_and_back(target: str, hops: int) -> None:
    made = load(TOPOLOGIES / "ipv6.yaml", time="virtual")
    path = made.path("ams", target)
    more_ms = echo_ms(made, path, family="ipv6") - echo_ms(made, path)
    assert more_ms == pytest.approx(2 * hops * 20 * 8 / 50e6 * 1000, abs=1e-9)


def test_the_tables_show_both(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(TEXT.format(ipv6="ipv6: true"))
    said = CliRunner().invoke(app, ["plan", str(file)], env={"COLUMNS": "200"}).stdout
    for text in ("IPv6", "fd6d:6967:7473:ffff::3", "fd6d:6967:7473:1::/64", "10.255.0.3"):
        assert text in said


RECORD = Record(provider="uml", time="real", created=datetime(2026, 11, 22, tzinfo=UTC), state="up")
SHOWN = (Path(__file__).parents[1] / "recorded_settings" / "ams.txt").read_text()


def shown_by(host: str, addresses: list[dict[str, object]]) -> shown_settings.HostSettings:
    made = plan("ipv6: true", "name: x\n{ipv6}\npair: {{hosts: [ams, bra], link: {{rtt: 17.7ms, rate: 100mbit}}}}\n")
    decoder, rest = json.JSONDecoder(), SHOWN.strip()
    qdiscs, end = decoder.raw_decode(rest)
    devices, length = decoder.raw_decode(rest[end:].lstrip())
    tail = rest[end:].lstrip()[length:]
    for device in devices:
        device["addr_info"] = addresses if device["ifname"] == "eth1" else []
    return shown_settings.parse(made.host(host), json.dumps(qdiscs) + json.dumps(devices) + tail)


def address(local: str, scope: str = "global") -> dict[str, object]:
    return {"family": "inet6", "local": local, "prefixlen": 64, "scope": scope}


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        ([address("fd6d:6967:7473::1"), address("fe80::1", "link")], []),
        ([address("fe80::1", "link")], ["eth1: IPv6 address is none, should be fd6d:6967:7473::1"]),
        (
            [address("fd6d:6967:7473::7")],
            ["eth1: IPv6 address is fd6d:6967:7473::7, should be fd6d:6967:7473::1"],
        ),
    ],
)
def test_what_a_host_shows_is_held_to_the_plan(addresses: list[dict[str, object]], said: list[str]) -> None:
    made = plan("ipv6: true", "name: x\n{ipv6}\npair: {{hosts: [ams, bra], link: {{rtt: 17.7ms, rate: 100mbit}}}}\n")
    found = shown_settings.differences(made, made.host("ams"), RECORD, shown_by("ams", addresses))
    assert [each for each in found if "IPv6" in each] == said


def test_what_shows_no_addresses_properly_cannot_be_read() -> None:
    with pytest.raises(HostFailed):
        shown_by("ams", [{"family": "inet6"}])


def test_a_virtual_machine_is_defined_as_without_it(tmp_path: Path) -> None:
    """Addresses come by the script that every provider's hosts run, after the machine has booted."""
    text = "name: x\n{ipv6}\npair: {{hosts: [ams, bra], link: {{rtt: 17.7ms}}}}\n"
    made, without = plan("ipv6: true", text), plan("", text)
    assert definition.machines(made, tmp_path, tmp_path) == definition.machines(without, tmp_path, tmp_path)
    assert "address replace fd6d:6967:7473::1/64 dev eth1 nodad" in script(made, "ams")

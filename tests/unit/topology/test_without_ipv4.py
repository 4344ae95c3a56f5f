"""A lab without IPv4: what its plan, its hosts' scripts and its tables have, and that nothing in them is IPv4's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from minigts import overlays
from minigts.cli.app import app
from minigts.dataplane import interfaces, names, router, shown_state, switch
from minigts.dataplane.round_trip import echo_range_ms
from minigts.errors import InputError
from minigts.overlays.host_file import facts_for
from minigts.topology.edit import add_link
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
ONLY = load(TOPOLOGIES / "ipv6-only.yaml", time="virtual")
BOTH = parse((TOPOLOGIES / "ipv6-only.yaml").read_text().replace("ipv4: false\n", ""), "both.yaml", time="virtual")
AN_IPV4_ADDRESS = re.compile(r"(?<![\w.])(?!127\.0\.0\.1\b)\d{1,3}(?:\.\d{1,3}){3}\b")
VLANS = """name: x
ipv6: true
ipv4: false
hosts: {a: , b: }
switches: {s: }
links:
- {ends: [a, s], vlan: 10}
- {ends: [b, s], vlans: [10, 20]}
"""


def test_its_plan_is_that_of_a_lab_with_both_but_for_what_it_says_of_ipv4() -> None:
    document, beside = json.loads(plan_json(ONLY)), json.loads(plan_json(BOTH))
    assert document.pop("ipv4") is False
    assert "ipv4" not in beside
    for each in (document, beside):
        for part in ("links", "paths"):
            each[part] = [{key: value for key, value in row.items() if "tcp" not in key} for row in each[part]]
    assert document == beside


def test_it_is_written_and_read_back() -> None:
    assert Plan.model_validate_json(plan_json(ONLY)) == ONLY


def test_a_plan_with_neither_is_refused() -> None:
    document = json.loads(plan_json(ONLY))
    del document["ipv6"]
    with pytest.raises(ValidationError, match="neither IPv4 nor IPv6"):
        Plan.model_validate(document)


@pytest.mark.parametrize("machine", ONLY.machines, ids=lambda each: str(each.name))
def test_no_script_for_a_machine_sets_an_ipv4_address(machine: Plan) -> None:
    assert not AN_IPV4_ADDRESS.findall(interfaces.script(ONLY, ONLY.machine(machine.name)))
    assert AN_IPV4_ADDRESS.findall(interfaces.script(BOTH, BOTH.machine(machine.name)))


def test_its_switch_has_the_ipv6_address_after_those_of_the_hosts() -> None:
    made = switch.script(ONLY, ONLY.switches[0], "make_switch")
    assert "MINIGTS_ADDRESS=fd6d:6967:7473:1::4/64\n" in made
    assert "MINIGTS_ADDRESS=10.20.1.4/24\n" in switch.script(BOTH, BOTH.switches[0], "make_switch")


def test_a_switch_with_vlans_has_one_in_each_and_the_hardware_addresses_that_it_has_with_ipv4() -> None:
    made = parse(VLANS, "t.yaml")
    lines = switch.script(made, made.switches[0], "make_switch").splitlines()
    with_ipv4 = parse(VLANS.replace("ipv4: false\n", ""), "t.yaml")
    assert "MINIGTS_VLANS='10=fd6d:6967:7473::3/64 20=fd6d:6967:7473:1::2/64'" in lines
    assert "MINIGTS_VLAN_MACS='10=06:6d:0a:14:00:03 20=06:6d:0a:14:01:02'" in lines
    for line in lines:
        if "VLAN_MACS=" in line:
            assert line in switch.script(with_ipv4, with_ipv4.switches[0], "make_switch").splitlines()


def test_every_address_by_which_something_is_reached_is_ipv6() -> None:
    assert ONLY.address_over(ONLY.path("client", "mail")) == "fd6d:6967:7473:ffff::4"
    by_name = {link.name: link for link in ONLY.links}
    assert ONLY.far_address(by_name["client-router"]) == "fd6d:6967:7473::2"
    assert ONLY.far_address(by_name["router-lan"]) == "fd6d:6967:7473:1::4"
    assert BOTH.address_over(BOTH.path("client", "mail")) == "10.255.0.4"
    assert BOTH.far_address(by_name["router-lan"]) == "10.20.1.4"


def test_names_lead_to_ipv6_addresses_alone() -> None:
    hosts = names.hosts_file(ONLY, ONLY.host("client")).splitlines()
    assert hosts == [
        "127.0.0.1 localhost",
        *(
            f"fd6d:6967:7473:ffff::{number} {name}"
            for number, name in enumerate(("client", "router", "web", "mail"), 1)
        ),
        "fd6d:6967:7473:1::4 lan",
    ]
    asked = names.show(ONLY)
    assert asked.split(" || ")[0].endswith("mail AAAA")
    shown = "nameserver 127.0.0.1\nfd6d:6967:7473:ffff::4\n"
    assert not [*names.differences(ONLY, ONLY.host("client"), shown)]
    assert [*names.differences(ONLY, ONLY.host("client"), "nameserver 127.0.0.1\n10.255.0.4\n")]


@pytest.mark.parametrize("protocol", ["ospf", "bgp"])
def test_routing_protocols_find_ipv6_routes_alone(protocol: str) -> None:
    made = parse(f"name: x\nrouting: {protocol}\nipv6: true\nipv4: false\nchain: {{hosts: 3}}\n", "t.yaml")
    host = made.hosts[0]
    configured = router.configuration(made, host)
    assert "ipv6 {" in configured
    assert "ipv4 {" not in configured
    ways = router.expected_routes(made, host)
    assert all(":" in to for to in ways.ports)
    assert len(ways.ports) == len(made.routes_of(host.name)) > 0
    assert "ip -4" not in router.show(made)


def test_tcp_is_predicted_with_ipv6_s_header() -> None:
    for plan, payload in ((ONLY, 1428), (BOTH, 1448)):
        assert plan.path("client", "mail").tcp_ceiling_mbit == pytest.approx(20 * payload / 1514, abs=1e-6)
        assert plan.links[0].tcp_ceiling_mbit == pytest.approx(20 * payload / 1514, abs=1e-6)


@pytest.mark.parametrize("also", ["ecmp: true", "routing: ospf"])
def test_so_it_is_where_there_are_several_ways(also: str) -> None:
    text = f"name: x\nipv6: true\nipv4: false\n{also}\nring: {{hosts: 4, link: {{rtt: 2ms, rate: 50mbit}}}}\n"
    made = parse(text, "t.yaml")
    for path in made.paths:
        assert path.tcp_ceiling_mbit == pytest.approx(50 * 1428 / 1514, abs=1e-6)


def test_an_echo_s_frames_have_20_bytes_more_on_each_wire() -> None:
    path = ONLY.path("client", "router")
    more_ms = echo_range_ms(ONLY, path)[0] - echo_range_ms(BOTH, path)[0]
    assert more_ms == pytest.approx(2 * 20 * 8 / 20e6 * 1000, abs=1e-9)


def test_a_link_that_is_added_has_ipv6_s_ceiling_too() -> None:
    chain = parse("name: x\nipv6: true\nipv4: false\nchain: {hosts: [a, b, c], link: {rate: 20mbit}}\n", "t.yaml")
    made = add_link(chain, "a", "c", {"rate": "20mbit"})
    assert made.links[-1].tcp_ceiling_mbit == made.links[0].tcp_ceiling_mbit


def test_phases_are_given_ipv6_addresses_and_what_crosses_the_links() -> None:
    facts = facts_for(ONLY, ONLY.host("router"), overlays.find("none"), "", "docker")
    assert facts.encapsulation == "ipv6"
    shown = facts.model_dump_json()
    assert not AN_IPV4_ADDRESS.findall(shown)
    assert facts_for(BOTH, BOTH.host("router"), overlays.find("none"), "", "docker").encapsulation == "none"


@pytest.mark.parametrize("name", overlays.known_names())
def test_overlays_that_need_ipv4_are_refused(name: str) -> None:
    if name in ("none", "none-v6", "vxlan-bare-v6", "wireguard-bare-v6"):
        overlays.require_fit(ONLY, name)
        return
    with pytest.raises(InputError, match=f"overlay {name} uses IPv4; overlays that do without are none, none-v6, "):
        overlays.require_fit(ONLY, name)


def routes(lines: list[str]) -> str:
    return "\n".join(["", *lines, "--forwarding--", "1", "1", ""])


def test_no_address_route_or_forwarding_of_ipv4_is_missed() -> None:
    host = ONLY.host("client")
    beside = ONLY.ipv6_of("client")
    assert beside is not None
    devices = [{"ifname": "lo", "flags": ["UP"]}, {"ifname": "eth1", "flags": ["UP"]}]
    found = ONLY.ipv6_routes_of("client")
    lines = [
        "fd6d:6967:7473::/64 dev eth1",
        *(f"{each.to} via {each.via} dev eth1 src {each.source}" for each in found),
    ]
    whole = shown_state.read(devices, "--routes of IPv6--" + routes(lines))
    assert not shown_state.differences(ONLY, host, whole, host.ports)
    lacks = shown_state.read(devices, "--routes of IPv6--" + routes(lines[:-1]))
    assert [each.text for each in shown_state.differences(ONLY, host, lacks, host.ports)] == [
        "no route to fd6d:6967:7473:1::/64"
    ]


def test_the_tables_show_each_address_once() -> None:
    said = CliRunner().invoke(app, ["plan", str(TOPOLOGIES / "ipv6-only.yaml")], env={"COLUMNS": "200"}).stdout
    for text in ("fd6d:6967:7473:ffff::4", "fd6d:6967:7473:1::/64", "fd6d:6967:7473::2 eth1"):
        assert text in said
    assert not AN_IPV4_ADDRESS.findall(said)
    assert "IPv6" not in said

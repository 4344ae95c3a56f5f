"""VLANs in a plan: which links are one segment, who has which address there, which way packets take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fidelity.test_explanation import RECORD

from minigts.dataplane import interfaces, round_trip, switch
from minigts.errors import HostFailed
from minigts.fidelity import shown_settings
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
VLANS = load(TOPOLOGIES / "vlans.yaml")


def made(text: str) -> Plan:
    return parse(f"name: x\n{text}", "vlans.yaml")


def test_a_trunk_is_of_each_of_its_vlans_and_an_access_link_of_one() -> None:
    subnets = {link.name: dict(link.segments) for link in VLANS.links}
    staff, guests = {10: "10.20.0.0/24"}, {20: "10.20.1.0/24"}
    assert subnets["router-s1"] == subnets["s1-s2"] == staff | guests
    assert subnets["staff1-s1"] == subnets["staff2-s2"] == staff
    assert subnets["guest1-s1"] == subnets["guest2-s2"] == guests


def test_a_host_behind_a_trunk_has_an_interface_in_each_vlan() -> None:
    router = VLANS.host("router")
    assert len(router.ports) == 1
    assert [(each.name, each.address) for each in router.on_segments] == [
        ("eth1.10", "10.20.0.1"),
        ("eth1.20", "10.20.1.1"),
    ]
    script = interfaces.script(VLANS, router)
    assert "ip link add link eth1 name eth1.20 type vlan id 20" in script
    assert "address replace 10.20.1.1/24 dev eth1.20" in script
    assert "dev eth1\n" not in script.replace("address replace", "dev")


def test_subnets_are_in_the_order_of_the_vlans_numbers() -> None:
    text = "links: [{ends: [a, s], vlans: [30, 4, 200]}, {ends: [b, s], vlan: 200}, {ends: [c, s], vlan: 4}]"
    trunk, *_ = made(f"hosts: {{a: , b: , c: }}\nswitches: {{s: }}\n{text}").links
    assert dict(trunk.segments) == {4: "10.20.0.0/24", 30: "10.20.1.0/24", 200: "10.20.2.0/24"}


def test_packets_go_between_vlans_by_the_router_alone() -> None:
    assert VLANS.path("staff1", "staff2").links == ("staff1-s1", "s1-s2", "staff2-s2")
    assert VLANS.path("staff2", "guest2").links == (
        *("staff2-s2", "s1-s2", "router-s1"),
        *("router-s1", "s1-s2", "guest2-s2"),
    )
    assert VLANS.path("staff2", "guest2").rtt_ms == 28
    assert {route.via for route in VLANS.routes_of("staff1") if "10.255.0.5" in route.to} == {"10.20.0.1"}


def test_without_a_router_two_vlans_are_two_networks() -> None:
    text = "links: [{ends: [a, s], vlan: 1}, {ends: [b, s], vlan: 1}, {ends: [c, s], vlan: 2}, {ends: [d, s], vlan: 2}]"
    plan = made(f"routing: neighbours\nhosts: {{a: , b: , c: , d: }}\nswitches: {{s: }}\n{text}")
    assert {(path.source, path.target) for path in plan.paths} == {("a", "b"), ("c", "d")}
    assert {other.name for _, other, _ in plan.neighbours(plan.host("a"))} == {"b"}


def test_a_tag_takes_its_time_on_each_crossing_of_a_trunk() -> None:
    """Four bytes at 50 Mbit/s are 640 ns; there and back, and router-s1 and s1-s2 twice on the way between VLANs."""
    path = VLANS.path("staff2", "guest2")
    own_ns = round_trip.frames_ns(VLANS, path, 98) - round(path.rtt_ms * 1e6)
    frames = 6 * 2
    tagged = 4 * 2
    assert own_ns == frames * round(98 * 8 / 50e6 * 1e9) + tagged * 640


def test_a_switch_answers_in_each_of_its_vlans() -> None:
    links = {link.name: link for link in VLANS.links}
    assert VLANS.far_address(links["staff1-s1"]) == "10.20.0.4"
    assert VLANS.far_address(links["guest1-s1"]) == "10.20.1.4"
    assert VLANS.far_address(links["s1-s2"]) == "10.20.0.5"


def test_a_ring_of_cables_is_none_where_each_vlan_takes_another() -> None:
    trunks = "{ends: [s, t], vlans: [1]}, {ends: [s, t], vlans: [2]}"
    hosts = ", ".join(f"{{ends: [{name}, {at}], vlan: {vlan}}}" for name, at, vlan in ("as1", "bt1", "cs2", "dt2"))
    plan = made(
        f"routing: neighbours\nhosts: {{a: , b: , c: , d: }}\nswitches: {{s: , t: }}\nlinks: [{trunks}, {hosts}]"
    )
    assert plan.path("a", "b").links == ("a-s", "s-t", "b-t")
    assert plan.path("c", "d").links == ("c-s", "s-t-2", "d-t")


def test_the_switch_is_told_its_ports_vlans() -> None:
    script = switch.script(VLANS, VLANS.switches[0], "make_switch")
    assert "MINIGTS_ACCESS='eth2=10 eth3=20'" in script
    assert "MINIGTS_TRUNKS='eth1=10,20 eth4=10,20'" in script
    assert "MINIGTS_VLANS='10=10.20.0.4/24 20=10.20.1.4/24'" in script


def rows(**vlans: list[object]) -> dict[str, object]:
    return {
        "headings": ["name", "tag", "trunks", "vlan_mode"],
        "data": [[name, *columns] for name, columns in vlans.items()],
    }


NONE: list[object] = ["set", []]
RIGHT = {
    "eth1": [NONE, ["set", [10, 20]], "trunk"],
    "eth2": [10, NONE, "access"],
    "eth3": [20, NONE, "access"],
    "eth4": [NONE, ["set", [10, 20]], "trunk"],
}


def shown_by(ports: object) -> shown_settings.HostSettings:
    devices = [{"ifname": f"eth{number}", "mtu": 1500} for number in range(1, 5)]
    features = [{"ifname": each["ifname"], "generic-receive-offload": {"active": False}} for each in devices]
    return shown_settings.parse(VLANS.switches[0], "\n".join(map(json.dumps, ([], devices, ports, features))))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"eth2": [20, NONE, "access"]}, ["eth2: VLAN is 20, should be 10"]),
        ({"eth1": [NONE, 10, "trunk"]}, ["eth1: VLAN is 10 tagged, should be 10, 20 tagged"]),
        ({"eth3": [NONE, NONE, NONE]}, ["eth3: VLAN is none, should be 20"]),
    ],
)
def test_what_a_switch_shows_is_held_to_the_plan(changed: dict[str, list[object]], said: list[str]) -> None:
    found = shown_settings.differences(VLANS, VLANS.switches[0], RECORD, shown_by(rows(**(RIGHT | changed))))
    assert [each for each in found if "VLAN" in each] == said


@pytest.mark.parametrize("ports", [{}, {"headings": ["name"], "data": [["eth1"]]}, [], {"headings": [], "data": 1}])
def test_what_shows_no_vlans_properly_cannot_be_read(ports: object) -> None:
    with pytest.raises(HostFailed):
        shown_by(ports)


def test_a_plan_whose_vlans_contradict_each_other_is_refused(tmp_path: Path) -> None:
    data = VLANS.model_dump(mode="json")
    data["switches"][0]["vlans"][1]["vlan"] = 30
    with pytest.raises(ValueError, match="s1: its VLANs are not those of its links"):
        Plan.model_validate(data)
    data = VLANS.model_dump(mode="json")
    data["hosts"][0]["ports"][0]["tagged"][1]["address"] = "10.20.0.9"
    with pytest.raises(ValueError, match=r"router: eth1\.20: 10\.20\.0\.9/24 is no address in 10\.20\.1\.0/24"):
        Plan.model_validate(data)


@pytest.mark.parametrize(
    ("mtus", "said"),
    [
        ({"eth1": 1500, "eth1.10": 1500, "eth1.20": 1500}, []),
        ({"eth1": 1500, "eth1.10": 1500}, ["eth1.20: there is none, should be of VLAN 20 with MTU 1500"]),
        (
            {"eth1": 1500, "eth1.10": 1400, "eth1.20": 1500},
            ["eth1.10: MTU is 1400, should be of VLAN 10 with MTU 1500"],
        ),
    ],
)
def test_an_interface_of_a_vlan_that_is_missing_or_of_another_mtu_is_named(
    mtus: dict[str, int], said: list[str]
) -> None:
    shown = shown_settings.HostSettings(qdiscs="[]", mtus=mtus, features={})
    found = shown_settings.differences(VLANS, VLANS.host("router"), RECORD, shown)
    assert [each for each in found if "VLAN" in each] == said

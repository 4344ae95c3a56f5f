"""Grades a folder with topology.yaml, the four routers' files and hosts.sh; each test is a point.

minigts test --minigts grading/topology.yaml --minigts-time virtual grade_mini_internet.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigts import api

HANDOUT = Path(__file__).parent / "handout" / "topology.yaml"
ROUTERS = ("oslo", "riga", "lodz", "graz")
PREFIXES = {"provider": "10.10.0.0/16", "customer": "10.40.0.0/16", "stub": "10.50.0.0/16", "peer": "10.60.0.0/16"}
OURS = "10.30.0.0/16"
WAYS = {
    "provider": ("riga", "oslo", "provider"),
    "peer": ("riga", "graz", "peer"),
    "customer": ("riga", "lodz", "customer"),
    "stub": ("riga", "lodz", "customer", "stub"),
}
"""By whose prefix: the machines that a packet of staff1 passes. Between riga and graz there are two equal ways."""
AT_REST_S, HEALED_S, PATIENT_S = 40.0, 12.0, 60.0
"""How long BGP may take to come to rest, OSPF and RSTP after a cut, and STP (IEEE 802.1D-1998: 20 s and twice 15 s)."""


@pytest.fixture(scope="session")
def at_rest(lab: api.Lab) -> None:
    lab.sleep(AT_REST_S)


@pytest.fixture
def ask(at_rest: None, run: Callable[..., Any]) -> Callable[[str, str], str]:
    """The answer of a host's BIRD; empty where none runs."""
    return lambda host, words: str(run(host, ["birdc", *words.split()], check=False).stdout)


@pytest.fixture
def reaches(at_rest: None, run: Callable[..., Any]) -> Callable[[str, str], bool]:
    return lambda host, address: run(host, "ping", "-n", "-c", "3", "-W", "2", address, check=False).code == 0


@pytest.fixture
def way(lab: api.Lab, at_rest: None, run: Callable[..., Any]) -> Callable[[str, str], list[str]]:
    """The machines that answer on the way to an address, in order; `*` for one that does not."""
    owners = {port.address: host.name for host in lab.plan.hosts for port in host.ports}
    owners |= {address_of(prefix): name for name, prefix in PREFIXES.items()}
    owners |= {host.address: host.name for host in lab.plan.hosts}
    owners |= {inside.address: host.name for host in lab.plan.hosts for port in host.ports for inside in port.tagged}

    def way(host: str, address: str) -> list[str]:
        told = run(host, "traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", "-m", "8", address, check=False).stdout
        return [owners.get(hop, hop) for hop in re.findall(r"^ *\d+ +(\S+)", told, re.MULTILINE)]

    return way


def address_of(prefix: str) -> str:
    return prefix.replace(".0/16", ".1")


def address(lab: api.Lab, host: str) -> str:
    return str(lab.plan.host(host).ports[0].address)


def routes(told: str) -> set[str]:
    """The prefixes of `birdc show route`."""
    return set(re.findall(r"^(\d+\.\d+\.\d+\.\d+/\d+)", told, re.MULTILINE))


# Task 1: the local network.


def test_only_the_local_network_is_changed(lab: api.Lab) -> None:
    handed_out = api.planned(HANDOUT)

    def given(plan: Any) -> tuple[Any, ...]:
        return (
            plan.routing,
            {host.name: (host.own_routes, host.software and host.software.run) for host in plan.hosts},
            {switch.name for switch in plan.switches},
            {(link.ends, link.rtt_ms, link.rate_mbit) for link in plan.links if link.ends != ("s1", "s2")},
        )

    assert given(lab.plan) == given(handed_out)


def test_staff_reach_each_other_directly(lab: api.Lab, way: Callable[[str, str], list[str]]) -> None:
    assert way("staff1", address(lab, "staff2")) == ["staff2"]


def test_students_reach_each_other_directly(lab: api.Lab, way: Callable[[str, str], list[str]]) -> None:
    assert way("student2", address(lab, "student1")) == ["student1"]


def test_staff_reach_students_by_the_router_alone(lab: api.Lab, way: Callable[[str, str], list[str]]) -> None:
    assert way("staff1", address(lab, "student1")) == ["riga", "student1"]


def test_the_root_is_s3(lab: api.Lab) -> None:
    ranks = {
        switch.name: (switch.spanning_tree.priority, switch.mac) for switch in lab.plan.switches if switch.spanning_tree
    }
    assert {*ranks} == {"s1", "s2", "s3"}
    assert min(ranks, key=lambda name: ranks[name]) == "s3"


def test_the_ring_of_switches_heals(
    lab: api.Lab, link: Callable[[str, str], api.Link], reaches: Callable[[str, str], bool]
) -> None:
    trees = [switch.spanning_tree for switch in lab.plan.switches]
    link("s1", "s3").cut()
    lab.sleep(HEALED_S if all(tree and tree.protocol == "rstp" for tree in trees) else PATIENT_S)
    assert reaches("staff1", address(lab, "staff2"))


# Task 2: OSPF.


@pytest.mark.parametrize("router", ROUTERS)
def test_every_router_is_reached_from_the_local_network(
    lab: api.Lab, reaches: Callable[[str, str], bool], router: str
) -> None:
    assert reaches("student1", lab.plan.host(router).address)


def test_the_slow_line_is_not_used(lab: api.Lab, way: Callable[[str, str], list[str]]) -> None:
    assert way("oslo", lab.plan.host("lodz").address)[0] in ("riga", "graz")
    assert way("lodz", lab.plan.host("oslo").address)[0] in ("riga", "graz")


def test_the_slow_line_is_used_where_nothing_else_is_left(
    lab: api.Lab, link: Callable[[str, str], api.Link], way: Callable[[str, str], list[str]]
) -> None:
    link("oslo", "riga").cut()
    link("graz", "oslo").cut()
    lab.sleep(HEALED_S)
    assert way("oslo", lab.plan.host("riga").address) == ["lodz", "riga"]


# Task 3: BGP.


@pytest.mark.parametrize("router", ROUTERS)
def test_bgp_inside_is_a_full_mesh(lab: api.Lab, ask: Callable[[str, str], str], router: str) -> None:
    told = ask(router, "show protocols all")
    for other in ROUTERS:
        if other != router:
            session = rf"Neighbor address: {re.escape(lab.plan.host(other).address)}\n"
            assert re.search(rf"BGP +\S+ +up .*Established(?:(?!\n\S).)*?{session}", told, re.DOTALL), other


@pytest.mark.parametrize("neighbour", ["provider", "peer", "customer"])
def test_the_own_prefix_is_announced_and_no_part_of_it(ask: Callable[[str, str], str], neighbour: str) -> None:
    heard = routes(ask(neighbour, "show route protocol as30"))
    assert {prefix for prefix in heard if prefix.startswith("10.30.")} == {OURS}
    assert not {prefix for prefix in heard if prefix.startswith(("10.90.", "10.255."))}


@pytest.mark.parametrize("neighbour", PREFIXES)
def test_hosts_reach_every_prefix(reaches: Callable[[str, str], bool], neighbour: str) -> None:
    assert reaches("staff2", address_of(PREFIXES[neighbour]))


# Task 4: policies.


@pytest.mark.parametrize("neighbour", ["provider", "peer"])
def test_there_is_no_transit_but_for_customers(ask: Callable[[str, str], str], neighbour: str) -> None:
    heard = routes(ask(neighbour, "show route protocol as30"))
    assert heard == {OURS, PREFIXES["customer"], PREFIXES["stub"]}


def test_the_customer_hears_of_all(ask: Callable[[str, str], str]) -> None:
    heard = routes(ask("customer", "show route protocol as30"))
    assert {OURS, PREFIXES["provider"], PREFIXES["peer"]} <= heard


@pytest.mark.parametrize("router", ROUTERS)
def test_the_customer_s_way_is_preferred_though_it_is_longer(ask: Callable[[str, str], str], router: str) -> None:
    told = ask(router, f"show route primary all {PREFIXES['stub']}")
    assert re.findall(r"BGP\.as_path: (.*)", told) == ["40 50 50 50"]


@pytest.mark.parametrize("neighbour", WAYS)
def test_packets_take_that_way(way: Callable[[str, str], list[str]], neighbour: str) -> None:
    taken = way("staff1", address_of(PREFIXES[neighbour]))
    if neighbour == "peer":
        assert taken[1] in ("oslo", "lodz")
        del taken[1]
    assert tuple(taken) == WAYS[neighbour]


def test_another_way_is_found_without_the_customer(
    lab: api.Lab, link: Callable[[str, str], api.Link], ask: Callable[[str, str], str]
) -> None:
    link("lodz", "customer").cut()
    lab.sleep(AT_REST_S)
    told = ask("riga", f"show route primary all {PREFIXES['stub']}")
    assert re.findall(r"BGP\.as_path: (.*)", told) == ["60 50"]

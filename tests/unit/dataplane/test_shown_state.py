"""What a host shows of its interfaces, addresses and routes: what somebody has changed there is named and undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from minigts.dataplane import shaping, shown_state
from minigts.fidelity import shown_settings
from minigts.lab import Record
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

CHAIN = "name: c\nhosts: {a: , b: , c: }\nlinks:\n  - {ends: [a, b], rtt: 10ms}\n  - {ends: [b, c], rate: 50mbit}\n"
PLAN, IPV6 = parse(CHAIN, "t.yaml"), parse(f"{CHAIN}ipv6: true\n", "t.yaml")
RECORD = Record(provider="uml", time="real", created=datetime(2026, 11, 26, tzinfo=UTC), state="up")
Text = list[str]
Devices = list[dict[str, Any]]


def devices(plan: Plan = PLAN, host: str = "b") -> Devices:
    """As `ip -j address show` has them, of a host that is as it should be."""
    machine, beside = plan.host(host), plan.ipv6_of(host)
    found = [_device("lo", [("inet", machine.address, 32)])]
    for port in machine.ports:
        six = [] if beside is None else [("inet6", beside.port(port.name).address, 64)]
        found.append(_device(port.name, [("inet", port.address, port.prefix), *six]))
        found.append(_device(f"ifb-{port.name}", []))
    return found


def _device(name: str, addresses: list[tuple[str, str, int]]) -> dict[str, Any]:
    info = [
        {"family": family, "local": address, "prefixlen": length, "scope": "global"}
        for family, address, length in addresses
    ]
    return {"ifname": name, "mtu": 1500, "flags": ["UP", "LOWER_UP"], "addr_info": info}


ROUTES = """\
10.20.0.0/24 dev eth1 proto kernel scope link src 10.20.0.2
10.20.1.0/24 dev eth2 proto kernel scope link src 10.20.1.1
10.255.0.1 via 10.20.0.1 dev eth1 src 10.255.0.2
10.255.0.3 via 10.20.1.2 dev eth2 src 10.255.0.2
"""
OF_IPV6 = """\
fd6d:6967:7473::/64 dev eth1 proto kernel metric 256 pref medium
fd6d:6967:7473:1::/64 dev eth2 proto kernel metric 256 pref medium
fd6d:6967:7473:ffff::1 via fd6d:6967:7473::1 dev eth1 src fd6d:6967:7473:ffff::2 metric 1024 pref medium
fd6d:6967:7473:ffff::3 via fd6d:6967:7473:1::2 dev eth2 src fd6d:6967:7473:ffff::2 metric 1024 pref medium
"""


def found(
    routes: str = ROUTES, shown: Devices | None = None, forwarding: str = "1\n1\n", plan: Plan = PLAN
) -> list[shown_state.StateDifference]:
    text = f"\n{routes}--routes of IPv6--\n{OF_IPV6}--forwarding--\n{forwarding}"
    host = plan.host("b")
    return shown_state.differences(plan, host, shown_state.read(shown or devices(plan), text), host.ports)


@pytest.mark.parametrize("plan", [PLAN, IPV6])
def test_a_host_that_is_as_it_should_be_shows_no_difference(plan: Plan) -> None:
    assert found(plan=plan) == []


def without(*words: str) -> str:
    return "".join(line for line in ROUTES.splitlines(keepends=True) if not any(word in line for word in words))


@pytest.mark.parametrize(
    ("routes", "texts"),
    [
        (without("10.255.0.1 "), ["no route to 10.255.0.1"]),
        (without("10.255.0.1 ", "10.255.0.3 "), ["2 routes are gone to 10.255.0.1, 10.255.0.3"]),
        (without("10.20.1.0/24"), ["no route to 10.20.1.0/24"]),
        (
            ROUTES.replace("via 10.20.0.1 dev eth1", "via 10.20.1.2 dev eth2"),
            ["the route to 10.255.0.1/32 goes by 10.20.1.2, should go by 10.20.0.1"],
        ),
        (
            without("10.255.0.1 ") + "blackhole 10.255.0.1\n",
            ["the route to 10.255.0.1/32 goes nowhere, should go by 10.20.0.1"],
        ),
        (
            ROUTES.replace("dev eth1 src 10.255.0.2", "dev eth1"),
            ["the route to 10.255.0.1/32 has the source none, should have 10.255.0.2"],
        ),
        (
            ROUTES + "10.20.0.0/28 via 10.20.1.2 dev eth2\n",
            ["the route to 10.20.0.0/28 goes by 10.20.1.2, where all of 10.20.0.0/24 should go by eth1"],
        ),
        (ROUTES + "10.20.0.1 dev eth1 scope link\n", []),
        (ROUTES + "192.0.2.0/24 via 10.20.0.1 dev eth1\ndefault via 10.20.0.1 dev eth1\n", []),
        (ROUTES + "172.31.0.0/16 proto bird metric 32\n\tnexthop via 10.20.0.1 dev eth1\n", []),
        (ROUTES + "10.255.0.1 via 10.20.1.2 dev eth2 metric 50\n", []),
        (ROUTES + "broadcast 10.20.0.255 dev eth1 table local\n", []),
    ],
)
def test_routes_that_are_gone_or_lead_elsewhere_are_differences_and_others_are_not(
    routes: str, texts: list[str]
) -> None:
    assert [each.text for each in found(routes)] == texts


@pytest.mark.parametrize("kind", ["local", "broadcast", "multicast", "anycast"])
def test_a_route_of_the_kernels_own_kind_is_none_of_the_plans(kind: str) -> None:
    assert found(f"{ROUTES}{kind} 10.20.1.7 dev eth2 table local\n") == []


@pytest.mark.parametrize(("gone", "more"), [(4, ""), (5, " and 1 more")])
def test_four_routes_that_are_gone_are_named_and_of_more_the_number(gone: int, more: str) -> None:
    plan = parse("name: line\nchain: {hosts: [m, h1, h2, h3, h4, h5, h6]}\n", "line.yaml")
    host, port = plan.host("m"), plan.host("m").ports[0]
    shown = [_device("lo", [("inet", host.address, 32)])]
    shown += [_device(port.name, [("inet", port.address, port.prefix)]), _device(f"ifb-{port.name}", [])]
    near = f"{plan.links[0].subnet} dev {port.name} proto kernel scope link src {port.address}"
    far = [f"{route.to} via {route.via} dev {port.name} src {host.address}" for route in plan.routes_of("m")]
    text = "\n".join([near, *far[gone:]]) + "\n--routes of IPv6--\n--forwarding--\n1\n1\n"
    texts = [each.text for each in shown_state.differences(plan, host, shown_state.read(shown, text), host.ports)]
    named = ", ".join(route.to.removesuffix("/32") for route in plan.routes_of("m")[:4])
    assert texts == [f"{gone} routes are gone to {named}{more}"]


def test_what_setting_again_would_leave_is_undone() -> None:
    diverting, blackhole = "10.20.0.0/28 via 10.20.1.2 dev eth2", "blackhole 10.255.0.1"
    routes = f"{without('10.255.0.1 ')}{diverting}\n{blackhole}\n"
    assert {each.mend for each in found(routes)} == {f"route del {diverting}", f"route del {blackhole}"}


def down(shown: Devices) -> None:
    shown[1]["flags"] = ["BROADCAST"]


def arp_off(shown: Devices) -> None:
    shown[1]["flags"].append("NOARP")


def delay_down(shown: Devices) -> None:
    shown[2]["flags"] = []


def address_gone(shown: Devices) -> None:
    shown[1]["addr_info"] = []


def other_length(shown: Devices) -> None:
    shown[1]["addr_info"][0]["prefixlen"] = 16


def own_gone(shown: Devices) -> None:
    shown[0]["addr_info"] = []


def removed(shown: Devices) -> None:
    del shown[1]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (down, "eth1: the interface is down"),
        (arp_off, "eth1: the interface does not resolve neighbours (arp off)"),
        (delay_down, "eth1: ifb-eth1, which delays what arrives, is down"),
        (address_gone, "eth1: its address 10.20.0.2/24 is gone"),
        (other_length, "eth1: its address 10.20.0.2/24 is gone"),
        (own_gone, "lo: the host's own address 10.255.0.2 is gone"),
        (removed, "eth1: there is no such interface"),
    ],
)
def test_what_somebody_did_to_an_interface_is_a_difference(change: Callable[[Devices], None], text: str) -> None:
    shown = devices()
    change(shown)
    assert [each.text for each in found(shown=shown)] == [text]


def test_a_port_that_is_down_stands_for_the_routes_that_went_with_it() -> None:
    shown = devices()
    down(shown)
    texts = [each.text for each in found(without("eth1"), shown)]
    assert texts == ["eth1: the interface is down", "the routes by eth1 are gone"]


@pytest.mark.parametrize(("forwarding", "plan"), [("0\n1\n", PLAN), ("1\n0\n", IPV6), ("1\n", IPV6)])
def test_a_host_that_does_not_forward_is_a_difference(forwarding: str, plan: Plan) -> None:
    (difference,) = found(forwarding=forwarding, plan=plan)
    assert difference.text.startswith("the host does not forward IPv")


def test_an_address_that_the_user_has_added_is_a_remark() -> None:
    shown = devices()
    shown[1]["addr_info"].append({"family": "inet", "local": "192.0.2.7", "prefixlen": 24, "scope": "global"})
    assert found(shown=shown) == []
    read = shown_state.read(shown, f"{ROUTES}--routes of IPv6----forwarding--1")
    assert shown_state.added_addresses(PLAN.host("b").ports[0], read) == ", also has '192.0.2.7/24'"


@pytest.mark.parametrize("text", ["", ROUTES, f"{ROUTES}--routes of IPv6--"])
def test_what_is_not_all_there_is_not_taken_for_all(text: str) -> None:
    with pytest.raises(ValueError, match="not all shown"):
        shown_state.read(devices(), text)


PLAIN = {"kind": "pfifo", "handle": "8001:", "dev": "eth1", "root": True, "options": {"limit": 1000}}
CLSACT = {"kind": "clsact", "handle": "ffff:", "dev": "eth1", "parent": "ffff:fff1", "options": {}}
HELD = {
    "kind": "netem",
    "handle": "8002:",
    "dev": "ifb-eth1",
    "root": True,
    "options": {"limit": 1000, "delay": {"delay": 0.005, "jitter": 0}},
}


@pytest.mark.parametrize(
    ("changed", "texts"),
    [
        ([PLAIN, CLSACT, HELD], []),
        ([{**PLAIN, "kind": "netem"}, CLSACT, HELD], ["eth1: the queueing discipline is netem, should be pfifo"]),
        ([{**PLAIN, "kind": "fq_codel"}, CLSACT, HELD], ["eth1: the queueing discipline is fq_codel, should be pfifo"]),
        ([{**PLAIN, "options": {"limit": 5}}, CLSACT, HELD], ["eth1: the queue holds 5 packets, should hold 1000"]),
        (
            [PLAIN, CLSACT, HELD, {"kind": "netem", "dev": "eth1", "parent": "8001:1", "options": {}}],
            ["eth1: a queueing discipline netem that is not the lab's, beside pfifo"],
        ),
        (
            [PLAIN, CLSACT, HELD, {"kind": "tbf", "dev": "ifb-eth1", "parent": "8002:1", "options": {}}],
            ["eth1: a queueing discipline tbf on ifb-eth1 that is not the lab's, beside netem"],
        ),
        ([PLAIN, CLSACT, HELD, {"kind": "noqueue", "dev": "docker0", "root": True}], []),
    ],
)
def test_queueing_disciplines_of_others_are_differences(changed: list[dict[str, Any]], texts: list[str]) -> None:
    port = PLAN.host("a").ports[0]
    shown = shaping.differences(port, json.dumps(changed))
    assert [text for text in shown if "queu" in text] == texts


def test_a_host_is_parsed_with_all_that_it_shows() -> None:
    host = PLAN.host("b")
    features = "\n".join(json.dumps([{"ifname": port.name}]) for port in host.ports)
    tail = f"--routes--\n{ROUTES}--routes of IPv6--\n--forwarding--\n0\n"
    shown = shown_settings.parse(host, f"[]\n{json.dumps(devices())}\n{features}\n{tail}")
    texts = shown_settings.differences(PLAN, host, RECORD, shown)
    assert "the host does not forward IPv4" in texts
    only = shown_settings.differences(PLAN, host, RECORD, shown, host.ports[1])
    assert any(text.startswith("eth2: rate") for text in only)
    assert not any(text.startswith("eth1") for text in only)

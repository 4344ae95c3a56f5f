"""The spanning tree of switches: the tree of the standard, rings in a file, and what a plan has of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.errors import InputError
from minigts.topology.difference import difference
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse
from minigts.topology.routes import switched
from minigts.topology.routes.graph import connected_components
from minigts.topology.routes.spanning_tree import (
    Bridge,
    BridgeTree,
    BridgeWire,
    Protocol,
    path_cost,
    ring_links,
    tree_of,
)

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
HOSTS = "hosts: {h1: , h2: , h3: }\n"
LINKS = """\
links:
  - {ends: [h1, s1], rtt: 1ms}
  - {ends: [h2, s2], rtt: 1ms}
  - {ends: [h3, s3], rtt: 1ms}
  - {ends: [s1, s2], rtt: 2ms}
  - {ends: [s2, s3], rtt: 2ms}
  - {ends: [s1, s3], rtt: 2ms}
"""


def made(switches: str, links: str = LINKS, more: str = "") -> Plan:
    return parse(f"name: x\n{more}{HOSTS}switches: {switches}\n{links}", "ring.yaml")


def bridge(name: str, priority: int = 32768, mac: str | None = None) -> Bridge:
    return Bridge(name, "rstp", priority, mac or f"02:00:00:00:00:{int(name[1:]):02x}")


@pytest.mark.parametrize(
    ("protocol", "rate_mbit", "cost"),
    [
        ("stp", None, 2),
        ("stp", 10_000, 2),
        ("stp", 1000, 4),
        ("stp", 999, 19),
        ("stp", 100, 19),
        ("stp", 50, 62),
        ("stp", 10, 100),
        ("stp", 4, 250),
        ("stp", 0.1, 250),
        ("rstp", None, 2000),
        ("rstp", 1000, 20_000),
        ("rstp", 100, 200_000),
        ("rstp", 50, 2_000_000),
        ("rstp", 1, 20_000_000),
    ],
)
def test_a_port_costs_what_the_standards_table_says(protocol: Protocol, rate_mbit: float | None, cost: int) -> None:
    assert path_cost(protocol, rate_mbit) == cost


def test_of_equal_ways_the_lower_identifier_of_the_sender_counts_then_its_lower_port() -> None:
    square = [BridgeWire(1, ("b1", "b2"), (1, 1), 4), BridgeWire(2, ("b1", "b3"), (2, 1), 4)]
    square += [BridgeWire(3, ("b2", "b4"), (2, 2), 4), BridgeWire(4, ("b3", "b4"), (2, 1), 4)]
    four = [bridge(f"b{number}") for number in (1, 2, 3, 4)]
    assert tree_of(four, square).blocked == {4}
    lower = [bridge("b1"), bridge("b2"), bridge("b3", 4096 * 7), bridge("b4")]
    assert tree_of(lower, square).roots["b1"] == "b3"
    # Two links side by side: the numbers at the root decide, not those of the bridge that chooses.
    twice = [BridgeWire(7, ("b1", "b2"), (2, 1), 4), BridgeWire(8, ("b1", "b2"), (1, 2), 4)]
    assert tree_of(four[:2], twice).blocked == {7}


def test_a_costly_link_is_left_for_two_cheap_ones() -> None:
    ring = [
        BridgeWire(1, ("b1", "b2"), (1, 1), 19),
        BridgeWire(2, ("b2", "b3"), (2, 1), 19),
        BridgeWire(3, ("b1", "b3"), (2, 2), 100),
    ]
    tree = tree_of([bridge("b1"), bridge("b2"), bridge("b3")], ring)
    assert tree.blocked == {3}
    assert tree.roles[3, "b3"] == "alternate"
    assert tree.roles[3, "b1"] == "designated"
    assert tree.roles[2, "b3"] == "root"


def as_exchanged(bridges: Sequence[Bridge], wires: Sequence[BridgeWire]) -> BridgeTree:
    """The tree as the bridges find it themselves: each keeps the best that it has heard on each port and tells what it
    knows on those on which nobody knows better, round by round, as configuration messages do (802.1D-1998, 8.6)."""
    named = {each.name: each for each in bridges}
    best = {each.name: (each.identifier, 0, each.identifier, 0, 0) for each in bridges}
    own = dict(best)
    while True:
        heard = {}
        for wire in wires:
            for end in (0, 1):
                here, there = wire.ends[end], wire.ends[1 - end]
                root, cost, *_ = best[there]
                offer = (root, cost + wire.cost, named[there].identifier, wire.numbers[1 - end], wire.numbers[end])
                heard.setdefault(here, []).append((offer, wire.link))
        after = {name: min([own[name], *(offer for offer, _ in heard.get(name, []))]) for name in named}
        if after == best:
            break
        best = after
    roles = {}
    for wire in wires:
        told = [
            (*best[name][:2], named[name].identifier, number)
            for name, number in zip(wire.ends, wire.numbers, strict=True)
        ]
        for end in (0, 1):
            name = wire.ends[end]
            is_root_port = (min(heard[name])[1] == wire.link) and best[name] != own[name]
            roles[wire.link, name] = (
                "root" if is_root_port else "designated" if told[end] < told[1 - end] else "alternate"
            )
    by_identifier = {each.identifier: each.name for each in bridges}
    return BridgeTree({name: by_identifier[best[name][0]] for name in named}, roles)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Bridge], list[BridgeWire]]:
    names = [f"b{number}" for number in range(draw(st.integers(2, 7)))]
    bridges = [bridge(name, draw(st.sampled_from([0, 4096, 32768]))) for name in names]
    pairs = draw(st.lists(st.sampled_from([*combinations(names, 2)]), max_size=12))
    count = dict.fromkeys(names, 0)
    wires = []
    for index, (first, second) in enumerate(pairs):
        count[first] += 1
        count[second] += 1
        cost = draw(st.sampled_from([2, 4, 19, 38]))
        wires.append(BridgeWire(index, (first, second), (count[first], count[second]), cost))
    return bridges, wires


@given(networks())
def test_the_tree_is_the_one_that_bridges_find_by_their_messages(
    network: tuple[list[Bridge], list[BridgeWire]],
) -> None:
    bridges, wires = network
    tree = tree_of(bridges, wires)
    assert tree == as_exchanged(bridges, wires)
    left = {wire.link: wire.ends for wire in wires if wire.link not in tree.blocked}
    assert ring_links(left) == []
    names = [each.name for each in bridges]
    assert connected_components(names, left.values()) == connected_components(names, (wire.ends for wire in wires))


@given(networks())
def test_a_link_is_on_a_ring_if_its_ends_stay_joined_without_it(network: tuple[list[Bridge], list[BridgeWire]]) -> None:
    ends = {wire.link: wire.ends for wire in network[1]}
    around = []
    for link, (first, second) in ends.items():
        parts = connected_components((first, second), (pair for other, pair in ends.items() if other != link))
        around += [link] if any({first, second} <= {*part} for part in parts) else []
    assert ring_links(ends) == around


def test_paths_go_over_the_tree() -> None:
    plan = made("{s1: {priority: 4096}, s2: , s3: }", more="defaults: {switch: {spanning_tree: rstp}}\n")
    assert plan.blocked == {"s2-s3"}
    assert plan.path("h2", "h3").links == ("h2-s2", "s1-s2", "s1-s3", "h3-s3")
    assert plan.path("h2", "h3").rtt_ms == 6
    assert made(
        "{s1: {spanning_tree: stp}, s2: {spanning_tree: stp}, s3: {spanning_tree: stp, priority: 0}}"
    ).blocked == {"s1-s2"}


def test_the_root_without_priorities_is_the_switch_with_the_lowest_mac_address() -> None:
    rings = made("{s1: , s2: , s3: }", more="defaults: {switch: {spanning_tree: rstp}}\n")
    assert rings.tree().roots["s1"] == "s1"
    macs = LINKS.replace("[s2, s3], rtt: 2ms", "[s2, s3], rtt: 2ms, macs: {s3: '00:00:5E:00:53:01'}")
    other = made("{s1: , s2: , s3: }", macs, more="defaults: {switch: {spanning_tree: rstp}}\n")
    assert other.tree().roots["s1"] == "s3"
    assert other.blocked == {"s1-s2"}


def test_a_slow_link_is_blocked_though_it_is_the_direct_one() -> None:
    plan = load(TOPOLOGIES / "spanning-trees.yaml")
    assert plan.blocked == {"r2-r3", "s1-s3"}
    assert plan.path("b1", "b3").links == ("b1-s1", "s1-s2", "s2-s3", "b3-s3")
    assert {link.name: link.tree_cost for link in plan.links}["s1-s3"] == 100


def test_a_plan_with_a_tree_is_read_back_and_shows_what_is_blocked() -> None:
    plan = load(TOPOLOGIES / "spanning-trees.yaml")
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    shown = plan_json(plan)
    assert '"blocked": [\n    "r2-r3",\n    "s1-s3"\n  ]' in shown
    assert Plan.model_validate_json(shown) == plan
    assert '"blocked"' not in plan_json(load(TOPOLOGIES / "switched.yaml"))


def test_a_stored_plan_whose_tree_has_no_costs_is_refused() -> None:
    plan = load(TOPOLOGIES / "spanning-trees.yaml")
    less = [link.model_copy(update={"tree_cost": None}) for link in plan.links]
    with pytest.raises(ValueError, match="a cost in the spanning tree"):
        Plan.model_validate(plan.model_copy(update={"links": tuple(less)}).model_dump())


def test_when_a_link_carries_nothing_the_tree_goes_over_others() -> None:
    plan = load(TOPOLOGIES / "spanning-trees.yaml")

    def blocked(*without: str) -> set[str]:
        return {*switched.blocked_links(plan.switches, plan.links, without)}

    assert blocked("r1-r3") == {"s1-s3"}
    assert blocked("s2-s3", "r1-r2") == set()


def test_a_switch_alone_beside_a_tree_has_none() -> None:
    """A ring is healed by the trees of the switches on it; one behind it needs none."""
    links = LINKS + "  - {ends: [s3, s4]}\n"
    plan = made("{s1: {spanning_tree: stp}, s2: {spanning_tree: stp}, s3: {spanning_tree: stp}, s4: }", links)
    assert plan.blocked == {"s2-s3"}
    assert [link.name for link in plan.links if link.tree_cost is not None] == ["s1-s2", "s2-s3", "s1-s3"]


VLANS = """\
links:
  - {ends: [h1, s1], vlan: 10}
  - {ends: [h2, s2], vlan: 10}
  - {ends: [h3, s2], vlan: 20}
  - {ends: [s1, s2]}
  - {ends: [s1, s2]%s}
"""


def test_one_tree_is_of_all_vlans() -> None:
    trees = "{s1: {spanning_tree: rstp}, s2: {spanning_tree: rstp}}"
    plan = made(trees, VLANS % "", more="routing: neighbours\n")
    assert plan.blocked == {"s1-s2-2"}
    assert plan.path("h1", "h2").links == ("h1-s1", "s1-s2", "h2-s2")
    alone = VLANS.replace("{ends: [s1, s2]}", "{ends: [s1, s2], vlan: 20}") % ", vlan: 10"
    with pytest.raises(
        InputError, match=r"links\[4\]: the spanning tree, which is one for all VLANs, blocks this link"
    ):
        made(trees, alone, more="routing: neighbours\n")


def test_a_ring_whose_switches_have_the_users_controller_is_the_controllers() -> None:
    plan = made("{s1: {controller: h3}, s2: {controller: h3}, s3: {controller: h3}}")
    assert plan.told == {link.name for link in plan.links}
    assert plan.told_switches == {"s1", "s2", "s3"}
    assert plan.unflooded == {"s2-s3"}
    assert plan.path("h1", "h2").links == ("h1-s1", "s1-s2", "h2-s2")
    assert load(TOPOLOGIES / "switched.yaml").told == set()


@pytest.mark.parametrize(
    ("switches", "why"),
    [
        ("{s1: , s2: , s3: }", r"s1, s2, s3 form a ring, .* or give each of them `spanning_tree: rstp`"),
        (
            "{s1: {spanning_tree: rstp}, s2: , s3: {spanning_tree: rstp}}",
            r"links\[5\]: the links between s1, s2, s3 form a ring, .* or give s2 `spanning_tree: rstp`",
        ),
        ("{s1: {controller: builtin}, s2: {controller: h3}, s3: {controller: h3}}", "s1, s2, s3 form a ring"),
        (
            "{s1: {spanning_tree: stp}, s2: {spanning_tree: rstp}, s3: {spanning_tree: stp}}",
            r"links\[3\]: s1 has stp, and s2, to which this link joins it, has rstp: give them the same",
        ),
        (
            "{s1: {spanning_tree: stp, controller: builtin}, s2: {spanning_tree: stp}, s3: {spanning_tree: stp}}",
            r"switches\.s1\.spanning_tree: a controller decides by itself where frames go",
        ),
        ("{s1: {priority: 5000}, s2: , s3: }", r"'5000' is not a priority: write a multiple of 4096"),
        ("{s1: {priority: 65536}, s2: , s3: }", "a priority is from 0 to 61440"),
        ("{s1: {spanning_tree: mstp}, s2: , s3: }", r"switches\.s1\.spanning_tree: 'mstp' is not a spanning tree"),
    ],
)
def test_what_is_no_tree_is_refused_with_the_remedy(switches: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        made(switches)


def test_none_is_the_nearer_setting() -> None:
    switches = "{s1: , s2: , s3: , s4: {spanning_tree: none}}"
    plan = made(switches, LINKS + "  - {ends: [s3, s4]}\n", more="defaults: {switch: {spanning_tree: stp}}\n")
    assert [each.spanning_tree is None for each in plan.switches] == [False, False, False, True]


def test_a_rate_that_changes_the_cost_waits_for_the_next_lab() -> None:
    text = (TOPOLOGIES / "spanning-trees.yaml").read_text()
    before = load(TOPOLOGIES / "spanning-trees.yaml")
    slower = parse(text.replace("[s2, s3]", "[s2, s3], rate: 10mbit"), "spanning-trees.yaml")
    assert any("costs of the spanning tree" in why for why in difference(before, slower).refused)


def test_the_tree_of_a_thousand_switches_joins_them_all_and_is_computed_once() -> None:

    names = [f"b{number}" for number in range(1000)]
    bridges = [
        Bridge(name, "rstp", 32768, f"02:00:00:00:{index >> 8:02x}:{index & 255:02x}")
        for index, name in enumerate(names)
    ]
    pairs = [*zip(names, (*names[1:], names[0]), strict=True), *zip(names, (*names[37:], *names[:37]), strict=True)]
    wires = [BridgeWire(index, pair, (index, index), 19) for index, pair in enumerate(pairs)]
    tree = tree_of(bridges, wires)
    assert len(wires) - len(tree.blocked) == len(bridges) - 1
    plan = load(TOPOLOGIES / "spanning-trees.yaml")
    assert plan.tree() is plan.tree(set())

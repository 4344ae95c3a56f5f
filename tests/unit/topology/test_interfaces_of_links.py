"""The numbers of ports: those of the file, and for others the lowest that are free, in every place that has them."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foreign_writers
from minigts.dataplane import interfaces, switch
from minigts.errors import InputError
from minigts.formats import detect, network
from minigts.language import interface_names
from minigts.topology.difference import difference
from minigts.topology.edit import add_link, remove_link
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse, parse_text
from minigts.topology.renumber import renumber_plan
from minigts.topology.routes.switched import blocked_links
from minigts.topology.to_network import network_of

GAPS = """\
name: gaps
hosts: {a: , b: , c: }
links:
- {ends: [a, b], interfaces: {a: eth3, b: eth0}}
- {ends: [b, c]}
- {ends: [c, a], interfaces: {a: eth2, c: uplink}}
"""
PLAN = parse(GAPS, "gaps.yaml")


def ports(plan: Plan) -> dict[str, dict[str, str]]:
    """By machine its ports in their order, each with its link."""
    return {machine.name: {port.name: port.link for port in machine.ports} for machine in plan.machines}


def in_order(plan: Plan) -> bool:
    """Whether the ports of each machine are in the order of their numbers, each once."""
    numbers = [[port.number for port in machine.ports] for machine in plan.machines]
    return all(first < second for own in numbers for first, second in pairwise(own))


def test_a_port_has_the_number_of_the_file_and_others_the_lowest_that_is_free() -> None:
    assert [(name, [*own.items()]) for name, own in ports(PLAN).items()] == [
        ("a", [("eth2", "c-a"), ("eth3", "a-b")]),
        ("b", [("eth0", "a-b"), ("eth1", "b-c")]),
        ("c", [("eth1", "b-c"), ("eth2", "c-a")]),
    ]
    assert [port.altname for port in PLAN.host("c").ports] == [None, "uplink"]
    assert Plan.model_validate_json(PLAN.model_dump_json()) == PLAN


def test_addresses_macs_and_routes_are_those_of_the_links_whatever_the_ports() -> None:
    plain = parse(re.sub(r", interfaces: \{.*?\}", "", GAPS), "plain.yaml")

    def ends(plan: Plan) -> dict[tuple[str, str], tuple[str, str, str]]:
        ports = ((host.name, port) for host in plan.hosts for port in host.ports)
        return {(name, port.link): (port.mac, port.address, port.peer_address) for name, port in ports}

    assert [*ports(plain)["a"]] == ["eth1", "eth2"]
    assert ends(plain) == ends(PLAN)
    assert [plain.routes_of(name) for name in "abc"] == [PLAN.routes_of(name) for name in "abc"]


def test_a_number_that_two_links_want_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"links\[2\]\.interfaces\.a: 'eth3' is the name of a's end of links\[0\] already"
    ):
        parse(GAPS.replace("eth2", "eth3"), "gaps.yaml")


@pytest.mark.parametrize(("was", "now"), [('"eth3"', '"eth1"'), ('"eth2"', '"eth3"')])
def test_a_stored_plan_has_its_ports_in_order_and_each_once(was: str, now: str) -> None:
    document = json.loads(PLAN.model_dump_json())
    text = json.dumps(document).replace(was, now, 1)
    with pytest.raises(ValueError, match=r"the numbers of its ports do not ascend|port eth3 of a appears twice"):
        Plan.model_validate_json(text)


def test_hosts_are_given_these_names_and_routes_by_them() -> None:
    script = interfaces.script(PLAN, PLAN.host("b"))
    named = [line.split()[1:] for line in script.splitlines() if line.startswith("name_port ")]
    macs = {port.name: port.mac for port in PLAN.host("b").ports}
    assert named == [[macs["eth1"], "eth1"], [macs["eth0"], "eth0"]]
    assert "link set dev eth0 mtu 1500 up" in script


@given(st.sets(st.integers(0, 60), min_size=1, max_size=8), st.integers(0, 1))
def test_renaming_from_the_last_one_finds_each_name_free(numbers: set[int], first: int) -> None:
    """A kernel has named them eth0, eth1, … in the order of the ports; or from eth1 on, where eth0 leads to minigts."""
    wanted = sorted(number + first for number in numbers)
    there = {place + first: place for place in range(len(wanted))}
    for place, number in reversed([*enumerate(wanted)]):
        assert number == place + first or number not in there
        there[number] = there.pop(place + first)
    assert there == {number: place for place, number in enumerate(wanted)}


def test_an_edited_plan_keeps_the_numbers_and_gives_the_lowest_free_one() -> None:
    less = remove_link(PLAN, "a-b")
    assert ports(less) == {"a": {"eth2": "c-a"}, "b": {"eth1": "b-c"}, "c": {"eth1": "b-c", "eth2": "c-a"}}
    more = add_link(less, "a", "b", {})
    assert [*ports(more)["a"]] == ["eth1", "eth2"]
    assert [*ports(more)["b"]] == ["eth1", "eth2"]


def applied(text: str, lab: Plan = PLAN) -> tuple[Plan, tuple[str, ...]]:
    """The plan of a file in the numbers of a lab, and what is refused of it."""
    file = parse_text(text, "gaps.yaml")
    made = difference(lab, renumber_plan(file.plan, lab, file.subnets, file.addresses, file.ports))
    return made.after, made.refused


def test_a_file_that_says_no_number_leaves_the_labs() -> None:
    less = remove_link(PLAN, "a-b")
    without = "\n".join(line for line in GAPS.replace("a: eth2, ", "").splitlines() if "[a, b]" not in line)
    assert applied(without, less) == (less, ())
    assert applied(GAPS) == (PLAN, ())
    after, refused = applied(f"{GAPS}- {{ends: [a, b]}}\n")
    assert refused == ()
    assert ports(after)["a"] == {"eth1": "a-b-2", "eth2": "c-a", "eth3": "a-b"}


@pytest.mark.parametrize(
    ("text", "link"),
    [
        (GAPS.replace("a: eth3", "a: eth7"), "a-b"),
        # The port that c has by the links' order.
        (f"{GAPS}- {{ends: [b, c], interfaces: {{c: eth1}}}}\n", "b-c"),
    ],
)
def test_a_port_of_a_lab_that_is_up_cannot_get_another_number(text: str, link: str) -> None:
    assert applied(text)[1] == (f"link {link}: interfaces: hosts name their interfaces as they boot",)


def test_of_two_links_between_switches_the_one_of_the_lower_port_carries() -> None:
    text = """\
name: tree
defaults: {switch: {spanning_tree: rstp}}
switches: {s1: , s2: }
hosts: {a: , b: }
links:
- {ends: [a, s1]}
- {ends: [b, s2]}
- {ends: [s1, s2]}
- {ends: [s1, s2], interfaces: {s1: eth0, s2: eth9}}
"""
    plan, plain = parse(text, "tree.yaml"), parse(text.replace(", interfaces: {s1: eth0, s2: eth9}", ""), "tree.yaml")
    assert ports(plan)["s1"] == {"eth0": "s1-s2-2", "eth1": "a-s1", "eth2": "s1-s2"}
    assert blocked_links(plan.switches, plan.links) == {"s1-s2"}
    assert blocked_links(plain.switches, plain.links) == {"s1-s2-2"}
    for name in ("s1", "s2"):
        told = switch.script(plan, plan.machine(name), "make_switch").splitlines()
        listed = next(line for line in told if line.startswith("MINIGTS_PORTS="))
        assert listed == f"MINIGTS_PORTS='{' '.join(ports(plan)[name])}'"


def lab_of(chance: random.Random) -> str:
    """A random topology in which some links say their ends' ports."""
    count = chance.randint(2, 6)
    free = {name: chance.sample(range(12), 12) for name in "abcdef"[:count]}
    ends = [chance.sample([*free], 2) for _ in range(chance.randint(1, 8))]
    ends += [[*pair] for pair in pairwise(free)]
    links = []
    for first, second in ends:
        named = {end: f"eth{free[end].pop()}" for end in (first, second) if chance.random() < 0.5 and free[end]}
        say = f", interfaces: {{{', '.join(f'{end}: {name}' for end, name in named.items())}}}" if named else ""
        links.append(f"- {{ends: [{first}, {second}]{say}}}")
    return "\n".join(["name: x", f"hosts: {{{', '.join(f'{name}: ' for name in free)}}}", "links:", *links, ""])


@pytest.mark.parametrize("seed", range(40))
def test_random_labs_keep_their_ports_when_they_are_stored_edited_applied_and_written(seed: int) -> None:
    chance = random.Random(seed)
    text = lab_of(chance)
    file = parse_text(text, "x.yaml")
    plan = file.plan
    assert in_order(plan)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    said = {
        (link.name, end): name
        for link, line in zip(plan.links, text.splitlines()[3:], strict=True)
        for end, name in eval_interfaces(line).items()
    }
    own = {(port.link, host.name): port.name for host in plan.hosts for port in host.ports}
    assert said.items() <= own.items()
    assert file.ports == said.keys()
    assert applied(text, plan) == (plan, ())
    again = parse(network.text(detect.read(foreign_writers.containerlab(network_of(plan)), "x.clab.yml")), "x.yaml")
    assert [sorted(each.items()) for each in named_ends(again)] == [sorted(each.items()) for each in named_ends(plan)]
    for _ in range(6):
        first, second = chance.sample([host.name for host in plan.hosts], 2)
        try:
            after = (
                remove_link(plan, chance.choice(plan.links).name)
                if chance.random() < 0.5
                else add_link(plan, first, second, {})
            )
        except InputError:
            continue
        assert in_order(after)
        kept = {(port.link, host.name): port.name for host in after.hosts for port in host.ports}
        before = {(port.link, host.name): port.name for host in plan.hosts for port in host.ports}
        assert all(kept[end] == before[end] for end in kept.keys() & before.keys())
        assert Plan.model_validate_json(after.model_dump_json()) == after
        plan = after


def eval_interfaces(line: str) -> dict[str, str]:
    """What a line of `lab_of` says of its ends."""
    inner = line.partition("interfaces: {")[2].partition("}")[0]
    return dict(each.split(": ") for each in inner.split(", ")) if inner else {}


def named_ends(plan: Plan) -> list[dict[str, str]]:
    """By link its ends with their ports, in the order of the ends; links have no names in containerlab's files."""
    own = {(port.link, host.name): port.name for host in plan.hosts for port in host.ports}
    return sorted(
        ({end: own[link.name, end] for end in link.ends} for link in plan.links), key=lambda each: sorted(each.items())
    )


@pytest.mark.parametrize("name", ["eth0", "eth1", "eth99999"])
def test_a_ports_name_and_its_number_are_one(name: str) -> None:
    number = interface_names.number_of(name)
    assert number is not None
    assert interface_names.port_name(number) == name


@pytest.mark.parametrize("name", ["eth", "eth01", "eth100000", "eth1.10", "eth١", "Eth1", "uplink"])
def test_other_names_are_no_ports(name: str) -> None:
    assert interface_names.number_of(name) is None

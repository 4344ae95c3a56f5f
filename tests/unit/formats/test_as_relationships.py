"""CAIDA's files of relationships between autonomous systems: read, cut down to the largest cones, and refused."""

from __future__ import annotations

import random

import pytest

from minigts.errors import InputError
from minigts.formats import detect, network
from minigts.topology.read import load

FILE = """# input clique: 1 2
# a comment
1|2|0
1|3|-1
2|3|-1
2|4|-1|bgp
3|5|-1
4|5|-1
3|4|0|mlp
3|6|-1
"""
NAME = "20261101.as-rel2.txt"


def read(text: str, largest: int | None = None, *, leave_out: bool = False) -> network.Network:
    read_in = detect.read(text, NAME, leave_out=leave_out, largest=largest)
    load.require_fit(read_in, NAME)
    return read_in


def test_systems_are_hosts_and_relationships_are_links() -> None:
    plan = load.parse(network.text(read(FILE)), "systems.yaml")
    assert [(host.name, host.asn) for host in plan.hosts] == [(f"as{n}", n) for n in range(1, 7)]
    assert [(link.ends, link.relationship) for link in plan.links][:2] == [
        (("as1", "as2"), "peer"),
        (("as1", "as3"), "customer"),
    ]
    assert plan.name == "20261101"
    assert plan.path("as6", "as4").links == ("as3-as6", "as3-as4")


def test_the_largest_cones_are_taken_with_all_of_their_providers() -> None:
    taken = read(FILE, largest=4)
    assert [each.name for each in taken.machines] == ["as2", "as1", "as3", "as4"]
    assert len(taken.links) == 5
    assert any("4 of 6" in note for note in taken.notes)


@pytest.mark.parametrize("seed", range(10))
def test_whoever_is_taken_has_all_of_its_providers(seed: int) -> None:
    draw = random.Random(seed)
    below = [(one, other) for other in range(2, 40) for one in range(1, other) if draw.random() < 0.06]
    text = "".join(f"{one}|{other}|-1\n" for one, other in below)
    there = {each.asn for each in detect.read(text, NAME, largest=9).machines}
    assert all(one in there for one, other in below if other in there)


WRONG = {
    "1|1|0": ":1: a relationship of 1 to itself",
    "x": ":1: 'x' is no relationship",
    "1|2": ":1: '1|2' is no relationship",
    "1|2|-1|a b": ":1: '1|2|-1|a b' is no relationship",
    "0|2|-1": ":1: 0 is no number of a system",
    "1|9999999999|-1": ":1: 9999999999 is no number of a system",
    "1|2|1": ":1: the relationship 1 of as1-as2 cannot be honoured",
    "1|2|-1\n2|1|0": ":2: a second relationship of 2|1, whose first is on line 1",
    "1|2|-1\n2|3|-1\n3|1|-1": "a ring of providers, whose routes may never settle: 1, a provider of 2, a provider of 3",
    "# nothing": "no relationship in it",
    "1|2|-1\n3|4|-1": "no link joins these 2 groups of hosts",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_such_file_is_one_error_with_its_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text)
    assert f"{NAME}" in str(refused.value) and WRONG[text] in str(refused.value)


def test_of_many_problems_the_first_are_told() -> None:
    with pytest.raises(InputError) as refused:
        read("x\n" * 1000)
    assert str(refused.value).count("is no relationship") == 20


def test_siblings_can_be_left_out() -> None:
    assert len(read("1|2|-1\n2|3|1\n1|3|-1", leave_out=True).links) == 2


def test_more_systems_than_a_lab_has_are_refused_with_a_remedy() -> None:
    text = "".join(f"1|{n}|-1\n" for n in range(2, 5200))
    with pytest.raises(InputError, match="5199 systems, and a lab has at most 5000: --ases 100"):
        read(text)
    assert len(read(text, largest=20).machines) == 20


@pytest.mark.parametrize("largest", [0, 1, 5001])
def test_a_number_of_systems_out_of_range_is_refused(largest: int) -> None:
    with pytest.raises(InputError, match="2 to 5000 systems"):
        read(FILE, largest=largest)


def test_other_formats_have_no_largest_systems_and_these_no_parts() -> None:
    with pytest.raises(InputError, match="leave out --ases"):
        detect.read("graph [ ]", "a.gml", largest=3)
    with pytest.raises(InputError, match="leave out --part"):
        detect.read(FILE, NAME, part=1)


def test_where_a_topology_is_wanted_the_verb_is_named() -> None:
    with pytest.raises(InputError, match=f"minigts import {NAME}"):
        load.load(NAME)

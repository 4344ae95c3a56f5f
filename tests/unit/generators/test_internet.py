"""Drawn Internets: the same by their seed, connected by valley-free ways, and within what a lab holds."""

from __future__ import annotations

from collections import Counter

import pytest

from minigts.errors import InputError
from minigts.formats import network
from minigts.generators.internet import MOST_LINKS, internet
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse


def plan_of(ases: int, seed: int) -> Plan:
    return parse(network.text(internet(ases, seed)), "internet.yaml")


@pytest.mark.parametrize(("ases", "seed"), [(10, 0), (10, 7), (30, 1), (60, 999_999)])
def test_all_systems_reach_each_other_up_and_down(ases: int, seed: int) -> None:
    plan = plan_of(ases, seed)
    assert plan.pairs == ases * (ases - 1) // 2
    assert {link.relationship for link in plan.links} == {"customer", "peer"}
    first = plan.hosts[0].name
    assert all(path.hops <= 6 for path in plan.paths_from(first))


def test_the_same_numbers_draw_the_same_internet() -> None:
    assert network.text(internet(40, 3)) == network.text(internet(40, 3))
    assert network.text(internet(40, 3)) != network.text(internet(40, 4))


def test_a_thousand_systems_fit_a_lab() -> None:
    drawn = internet(1000, 1)
    links = Counter(end for link in drawn.links for end in link.ends)
    assert len(drawn.machines) == 1000 and max(links.values()) <= MOST_LINKS
    assert drawn.subnets == "10.64.0.0/10", "the usual block holds 1024 links"
    assert len(network.text(drawn).encode()) < 256_000


def test_light_hosts_have_as_many_links_as_they_get() -> None:
    drawn = internet(1000, 1, light=True)
    links = Counter(end for link in drawn.links for end in link.ends)
    assert max(links.values()) > MOST_LINKS
    text = network.text(drawn)
    assert len(text.encode()) < 256_000
    assert parse(text, "internet.yaml", time="virtual").sharing == {each.name for each in drawn.machines}


def test_few_systems_have_most_customers() -> None:
    drawn = internet(300, 2)
    customers = Counter(link.ends[0] for link in drawn.links if link.relationship == "customer")
    of_all = sum(customers.values())
    assert sum(count for _, count in customers.most_common(30)) > of_all / 2
    edge = {each.name for each in drawn.machines if each.name.startswith("s")}
    assert not edge & customers.keys()


@pytest.mark.parametrize(("ases", "seed", "why"), [(9, 1, "--ases 9"), (5001, 1, "--ases 5001"), (10, -1, "--seed -1")])
def test_numbers_out_of_range_are_refused(ases: int, seed: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        internet(ases, seed)

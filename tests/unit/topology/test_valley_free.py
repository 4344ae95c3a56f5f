"""Routes by customers, peers and providers, against BGP played message by message, and what a file may say of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest

from minigts.dataplane import router
from minigts.errors import InputError
from minigts.topology.facts.hosts.asn import number_of
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse
from minigts.topology.routes.valley_free import INVERSE, NOWHERE, Bond, Relationship, Relationships

PREFERENCE: Mapping[Relationship | None, int] = {None: 4, "customer": 3, "peer": 2, "provider": 1}


class Learnt(NamedTuple):
    """A system's route: from which kind of neighbour, and the systems on the way, itself first."""

    kind: Relationship | None
    way: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        return -PREFERENCE[self.kind], len(self.way), self.way[1] if len(self.way) > 1 else -1


def played(nodes: int, bonds: Sequence[Bond], target: int, draw: random.Random) -> dict[int, tuple[int, ...]]:
    """The ways to one system that BGP ends with: systems look again at what their neighbours announce, in an order that
    is drawn, until none has anything new."""
    neighbours: dict[int, dict[int, Relationship]] = {node: {} for node in range(nodes)}
    for (one, other), kind in bonds:
        assert kind is not None
        neighbours[one][other], neighbours[other][one] = kind, INVERSE[kind]
    best: dict[int, Learnt] = {target: Learnt(None, (target,))}
    order = [node for node in range(nodes) if node != target]
    for _ in range(10 * nodes):
        draw.shuffle(order)
        before = dict(best)
        for node in order:
            told = [
                Learnt(kind, (node, *best[beside].way))
                for beside, kind in neighbours[node].items()
                if beside in best
                and node not in best[beside].way
                and (kind == "provider" or best[beside].kind in (None, "customer"))
            ]
            if told:
                best[node] = min(told, key=lambda each: each.rank)
            else:
                best.pop(node, None)
        if best == before:
            return {node: each.way for node, each in best.items() if node != target}
    raise AssertionError("BGP does not settle")


def drawn_bonds(nodes: int, draw: random.Random) -> list[Bond]:
    """Links between two systems each, where customers are providers of none that comes before them in a drawn order."""
    order = draw.sample(range(nodes), nodes)
    found = []
    for above in range(nodes):
        for below in range(above + 1, nodes):
            if draw.random() < 0.4:
                kind: Relationship = draw.choice(["customer", "customer", "peer"])
                one, other = order[above], order[below]
                found.append(Bond((one, other), kind) if draw.random() < 0.5 else Bond((other, one), INVERSE[kind]))
    return draw.sample(found, len(found))


def calculated(nodes: int, bonds: Sequence[Bond], target: int) -> dict[int, tuple[int, ...]]:
    to = Relationships(nodes, bonds).routes_to(target)
    found = {}
    for node in (each for each in range(nodes) if to.edges[each] != NOWHERE):
        way = [node]
        while way[-1] != target:
            ends = bonds[to.edges[way[-1]]].ends
            way.append(ends[1] if ends[0] == way[-1] else ends[0])
        assert len(way) == to.systems[node] + 1
        found[node] = tuple(way)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_routes_are_those_with_which_bgp_ends(seed: int) -> None:
    draw = random.Random(seed)
    nodes = draw.randint(2, 9)
    bonds = drawn_bonds(nodes, draw)
    assert Relationships(nodes, bonds).customer_ring() == ()
    for target in range(nodes):
        assert calculated(nodes, bonds, target) == played(nodes, bonds, target, draw), (nodes, bonds, target)


@pytest.mark.parametrize("seed", range(20))
def test_no_way_goes_down_and_up_again_and_whoever_reaches_is_reached(seed: int) -> None:
    draw = random.Random(seed)
    bonds = drawn_bonds(12, draw)
    kinds = {(one, other): kind for (one, other), kind in bonds} | {(b, a): INVERSE[k] for (a, b), k in bonds if k}
    reached = set()
    for target in range(12):
        for node, way in calculated(12, bonds, target).items():
            reached.add((node, target))
            passed = "".join(
                {"provider": "u", "peer": "p", "customer": "d"}[kinds[step] or ""] for step in pairwise(way)
            )
            assert passed.lstrip("u").removeprefix("p").strip("d") == "", passed
    assert reached == {(target, node) for node, target in reached}


def test_a_link_that_is_cut_is_not_used() -> None:
    bonds = [Bond((0, 1), "customer"), Bond((0, 2), "customer"), Bond((2, 1), "customer")]
    assert list(Relationships(3, bonds).routes_to(1).edges) == [0, NOWHERE, 2]
    assert list(Relationships(3, bonds, without=[0]).routes_to(1).edges) == [1, NOWHERE, 2]


def test_a_ring_of_customers_is_found() -> None:
    ring = [Bond((0, 1), "customer"), Bond((2, 1), "provider"), Bond((2, 3), "customer"), Bond((3, 1), "customer")]
    assert sorted(Relationships(4, ring).customer_ring()) == [1, 2, 3]


HOSTS = "hosts: {t: , u: , a: {asn: 174}, b: {routing: {engine: frr}}, c: }\n"
LINKS = (
    "links: [{ends: [t, u], relationship: peer, rtt: 10ms}, {ends: [t, a], relationship: customer, rtt: 4ms}, "
    "{ends: [b, u], relationship: provider, rtt: 6ms}, {ends: [a, b], relationship: peer, rtt: 20ms}, "
    "{ends: [a, c], relationship: customer, rtt: 2ms}]\n"
)


def of(hosts: str = HOSTS, links: str = LINKS, more: str = "routing: bgp\n") -> Plan:
    return parse(f"name: five\n{more}{hosts}{links}", "five.yaml")


def test_paths_and_routes_of_the_plan() -> None:
    plan = of()
    assert plan.path("c", "b").links == ("a-c", "a-b")
    assert plan.path("c", "u").links == ("a-c", "t-a", "t-u"), "b tells its peer a nothing of its provider u"
    assert plan.path("u", "c").rtt_ms == pytest.approx(16)
    assert [route.to for route in plan.routes_of("c")] == [f"10.255.0.{n}/32" for n in (1, 2, 3, 4)]
    assert plan.pairs == 10
    assert Plan.model_validate_json(plan_json(plan)).path("c", "b") == plan.path("c", "b")


def test_expected_routes_follow_a_cut() -> None:
    plan = of()
    whole = router.expected_routes(plan, plan.host("a")).ports
    assert whole["10.255.0.4"] == frozenset({"eth2"})
    cut = router.expected_routes(plan, plan.host("a"), {"a-b"}).ports
    assert cut["10.255.0.4"] == frozenset({"eth1"})
    alone = router.expected_routes(plan, plan.host("t"), {"t-a"}).ports
    assert sorted(alone) == ["10.255.0.2", "10.255.0.4"], "u tells its peer t nothing of b's peer a"


def test_a_way_there_and_another_back() -> None:
    links = (
        "links: [{ends: [p, a], relationship: customer}, {ends: [q, b], relationship: customer}, "
        "{ends: [p, q], relationship: peer}, {ends: [r, a], relationship: customer}, "
        "{ends: [r, b], relationship: customer}, {ends: [p, b], relationship: customer}]\n"
    )
    plan = of("hosts: {r: , p: , q: , a: , b: }\n", links)
    path = plan.path("a", "q")
    assert path.links == ("p-a", "p-q")
    back = plan.path("q", "a")
    assert (back.links, back.each_back) == (("p-q", "p-a"), (("p-a", "p-q"),))
    assert plan.path("a", "b").links == ("r-a", "r-b"), "of two equal ones the first in the file"


def test_hosts_without_a_way_are_no_pair() -> None:
    plan = of(
        "hosts: {a: , b: , c: }\n", "links: [{ends: [a, b], relationship: peer}, {ends: [b, c], relationship: peer}]\n"
    )
    assert plan.pairs == 2
    assert not plan.reaches("a", "c")
    with pytest.raises(KeyError):
        plan.path("a", "c")
    assert [path.target for path in plan.paths_from("a")] == ["b"]


def test_bird_and_frr_have_the_same_policies() -> None:
    plan = of()
    bird, frr = (router.configuration(plan, plan.host(name)) for name in ("a", "b"))
    assert "local 10.20.1.2 port 1179 as 174;" in bird
    assert "export filter to_peer;" in bird and "import filter from_provider;" in bird
    assert "route 10.255.0.3/32 blackhole;" in bird and "route 10.20." not in bird
    assert "router bgp 64515" in frr and "neighbor 10.20.3.1 remote-as 174" in frr
    assert "bgp bestpath compare-routerid" in frr and "as-path ignore" not in frr
    assert "neighbor 10.20.3.1 route-map to-peer out" in frr and "network 10.20." not in frr
    assert number_of(plan.host("t")) == 64512


WRONG = {
    "no BGP": ({"more": "routing: ospf\n"}, "links[0].relationship: only BGP knows customers"),
    "static": ({"more": ""}, "links[0].relationship: only BGP knows customers"),
    "ecmp": ({"more": "routing: bgp\necmp: true\n"}, "ecmp: with relationships each host has one best way"),
    "overlay": ({"more": "routing: bgp\noverlay: swarm\n"}, "overlay: overlays are laid over hosts of one operator"),
    "one without": (
        {"links": LINKS.replace("relationship: peer, rtt: 20ms", "rtt: 20ms")},
        "links[3]: no relationship",
    ),
    "a cost": ({"links": LINKS.replace("rtt: 20ms", "cost: 3")}, "links[3]: both cost and relationship"),
    "twice": ({"links": LINKS.replace("ends: [a, b]", "ends: [a, t]")}, "links[3]: links[1] joins a and t already"),
    "a ring": (
        {"links": LINKS.replace("ends: [a, b], relationship: peer", "ends: [c, t], relationship: customer")},
        "is a customer of",
    ),
    "a word": ({"links": LINKS.replace("peer", "sibling")}, "'sibling' is not a relationship"),
    "number twice": ({"hosts": HOSTS.replace("c: }", "c: {asn: 174}}")}, "asn: a is autonomous system 174 already"),
    "number of another": ({"hosts": HOSTS.replace("174", "64512")}, "a.asn: t is autonomous system 64512 already"),
    "reserved": ({"hosts": HOSTS.replace("174", "23456")}, "23456 is reserved (RFC 6793)"),
    "number by OSPF": (
        {"more": "routing: ospf\n", "links": "chain: {hosts: [x, y]}\n", "hosts": "hosts: {z: {asn: 3}}\n"},
        "hosts.z.asn: only BGP has autonomous systems",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_file_may_not_say(case: str) -> None:
    changed, message = WRONG[case]
    with pytest.raises(InputError) as refused:
        of(**changed)
    assert message in str(refused.value)


def test_a_damaged_plan_is_refused() -> None:
    text = plan_json(of()).replace('"relationship": "peer"', '"mtu": 1', 0)
    lacking = text.replace('      "relationship": "peer",\n', "", 1).replace(',\n      "relationship": "peer"', "", 1)
    assert lacking != text
    with pytest.raises(ValueError, match="a relationship is of all links or none"):
        Plan.model_validate_json(lacking)

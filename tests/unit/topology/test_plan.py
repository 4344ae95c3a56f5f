"""What a plan says of addresses, routes and paths."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network, ip_network
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from minigts.dataplane import interfaces
from minigts.errors import InputError
from minigts.topology.facts.links.queue import default_bytes
from minigts.topology.plan.directions import delay_packets
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"


def shipped(name: str) -> Plan:
    return load(TOPOLOGIES / f"{name}.yaml")


def made(text: str) -> Plan:
    return parse(f"name: x\n{text}\n", "f.yaml")


def walk(plan: Plan, source: str, address: str) -> list[str]:
    """The hosts that a packet from `source` to `address` passes when each follows its own routes."""
    hosts = [plan.host(source)]
    while address not in (hosts[-1].address, *(port.address for port in hosts[-1].ports)):
        here = hosts[-1]
        target = IPv4Address(address)
        on_link = [p for p in here.ports if target in ip_network(f"{p.address}/{p.prefix}", strict=False)]
        vias = {route.via for route in plan.routes_of(here.name) if target in IPv4Network(route.to)}
        gateways = on_link[:1] or [port for port in here.ports if port.peer_address in vias]
        assert len(gateways) == 1, f"{here.name} has {len(gateways)} ways to {address}"
        hosts.append(plan.host(gateways[0].peer_host))
        assert len(hosts) <= len(plan.hosts), f"a loop on the way from {source} to {address}"
    return [host.name for host in hosts]


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_plan_is_the_same_bytes_and_survives_json(path: Path) -> None:
    text = plan_json(load(path))
    assert text == plan_json(load(path))
    assert Plan.model_validate_json(text) == load(path)
    assert text.endswith("}\n")
    own = [host.software for host in load(path).hosts if host.software is not None]
    names_its_places = any(software.files or software.run for software in own)
    assert names_its_places or str(TOPOLOGIES) not in text


def test_chain6_adds_up_to_figure_15() -> None:
    plan = shipped("chain6")
    sums = [plan.path("ams", other).rtt_ms for other in ("bra", "lju", "mil", "ham", "lon")]
    assert sums == [21.75, 26.45, 68.03, 120.60, 161.23]
    assert [plan.path("ams", other).hops for other in ("bra", "lon")] == [1, 5]
    assert len(plan.paths) == 15
    assert all(path.reachable for path in plan.paths)


def test_ceiling_is_payload_over_frame_of_the_lowest_rate() -> None:
    plan = made("chain: {hosts: 3, segments: [{rate: 100mbit}, {rate: 50mbit, mtu: 1400}]}")
    assert plan.path("h1", "h2").tcp_ceiling_mbit == pytest.approx(100 * 1448 / 1514, abs=1e-6)
    assert plan.path("h1", "h3").tcp_ceiling_mbit == pytest.approx(50 * 1348 / 1414, abs=1e-6)
    assert made("pair: {}").path("h1", "h2").tcp_ceiling_mbit is None


def test_loss_is_combined() -> None:
    assert made("chain: {hosts: 3, link: {loss: 10%}}").path("h1", "h3").loss_percent == 19.0


def test_neighbours_reach_only_neighbours() -> None:
    plan = shipped("chain6-neighbours")
    assert all(plan.routes_of(host.name) == () for host in plan.hosts)
    assert [path.reachable for path in plan.paths] == [path.hops == 1 for path in plan.paths]


def test_neighbours_use_their_own_link_even_where_a_way_round_is_shorter() -> None:
    text = "hosts: {a: , b: , c: }\nlinks: [{ends: [a, b], rtt: 50ms}, {ends: [b, c], rtt: 1ms}, {ends: [c, a]}]"
    assert made(f"{text}\nrouting: neighbours").path("a", "b").links == ("a-b",)
    assert made(text).path("a", "b").links == ("c-a", "b-c")


@pytest.mark.parametrize(
    ("links", "way"),
    [
        ("{ends: [a, c], rtt: 1ms}, {ends: [c, b], rtt: 1ms}, {ends: [a, b], rtt: 2ms}", ("a-b",)),
        ("{ends: [a, c]}, {ends: [d, b]}, {ends: [c, b]}, {ends: [a, d]}", ("a-c", "c-b")),
        ("{ends: [a, d]}, {ends: [c, b]}, {ends: [d, b]}, {ends: [a, c]}", ("a-d", "d-b")),
    ],
    ids=["fewer-hops", "earlier-by-c", "earlier-by-d"],
)
def test_ties_go_to_fewer_hops_then_to_the_earlier_segments(links: str, way: tuple[str, ...]) -> None:
    plan = made(f"hosts: {{a: , b: , c: , d: }}\nlinks: [{links}]\nrouting: neighbours")
    routed = made(f"hosts: {{a: , b: , c: , d: }}\nlinks: [{links}, {{ends: [d, c], rtt: 9s}}]")
    assert plan.path("a", "b").links == routed.path("a", "b").links == way


def names_on(plan: Plan, host: str) -> list[list[str]]:
    """What the script of a host writes into its /etc/hosts, by line."""
    text = interfaces.script(plan, plan.host(host)).partition("printf %s ")[2].partition(" >/etc/hosts")[0]
    return [line.split() for line in text.strip("'").splitlines()]


def test_in_mode_neighbours_the_name_of_a_neighbour_leads_to_its_address_on_the_shared_link() -> None:
    """Of parallel links to that on the one that the path takes; of who is no neighbour to its own, as everywhere."""
    text = (
        "hosts: {a: , b: , c: }\nipv6: true\n"
        "links: [{ends: [a, b], rtt: 9ms}, {ends: [a, b], rtt: 1ms}, {ends: [b, c]}]\n"
    )
    near = made(f"{text}routing: neighbours")
    four, six = near.host("b").ports[1].address, near.ipv6_of("b").ports[1].address  # type: ignore[union-attr]
    assert near.address_over(near.path("a", "b")) == four
    found = names_on(near, "a")
    assert [address for address, *names in found if names == ["b"]] == [four, six]
    assert [near.host("c").address, "c"] in found
    assert [near.host("a").address, "a"] in found
    routed = made(text)
    assert [routed.host("b").address, "b"] in names_on(routed, "a")


def test_separate_pairs_have_no_path_between_them() -> None:
    plan = shipped("fourpairs")
    assert len(plan.paths) == 4
    with pytest.raises(KeyError):
        plan.path("a1", "b1")


def test_groups_are_the_plans() -> None:
    plan = shipped("fourpairs")
    assert [(group.name, group.hosts) for group in plan.groups][:2] == [("a", ("a1", "a2")), ("b", ("b1", "b2"))]
    assert plan.routes_of("b2")[0].to == f"{plan.host('b1').address}/32"
    assert shipped("chain6").groups == ()


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ({"name": "e", "hosts": ["a1", "b1"]}, "member a1 appears twice"),
        ({"name": "a", "hosts": ["e1", "e2"]}, "group a appears twice"),
        ({"name": "e", "hosts": ["e1", "e2"]}, "group e: no host 'e1'"),
    ],
    ids=["two-groups", "two-of-one-name", "no-host"],
)
def test_a_plan_with_impossible_groups_is_refused(group: object, problem: str) -> None:
    raw = shipped("fourpairs").model_dump(mode="json")
    raw["groups"].append(group)
    with pytest.raises(ValidationError, match=problem):
        Plan.model_validate(raw)


def test_ports_are_numbered_in_order_of_links_and_mirror_their_peers() -> None:
    plan = shipped("chain6")
    assert [port.name for port in plan.host("bra").ports] == ["eth1", "eth2"]
    for link in plan.links:
        near, far = (next(p for p in plan.host(end).ports if p.link == link.name) for end in link.ends)
        assert (near.peer_host, near.peer_address) == (link.ends[1], far.address)
        assert near.outgoing == far.incoming
        assert near.outgoing.delay_ms * 2 == pytest.approx(link.rtt_ms)


def test_parallel_links_have_names_of_their_own() -> None:
    ends = "{ends: [a, b]}"
    plan = made(f"hosts: {{a: , b: }}\nlinks: [{ends}, {ends}, {{ends: [a, b], name: a-b-2}}, {ends}]")
    assert [link.name for link in plan.links] == ["a-b", "a-b-3", "a-b-2", "a-b-4"]
    assert plan.path("a", "b").links == ("a-b",)


def test_segments_without_a_subnet_avoid_those_with_one() -> None:
    links = "[{ends: [a, b]}, {ends: [a, b], subnet: 10.20.1.64/26}, {ends: [a, b]}]"
    plan = made(f"hosts: {{a: , b: }}\nlinks: {links}")
    assert [link.subnet for link in plan.links] == ["10.20.0.0/24", "10.20.1.64/26", "10.20.2.0/24"]


@st.composite
def meshes(draw: st.DrawFn) -> str:
    """Connected topologies of up to eight hosts with RTTs that often tie, zero included."""
    count = draw(st.integers(2, 8))
    tree = [(draw(st.integers(0, host - 1)), host) for host in range(1, count)]
    more = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=8))
    pairs = draw(st.permutations([*tree, *(pair for pair in more if pair[0] != pair[1])]))
    rtts = draw(st.lists(st.sampled_from(["0ms", "1ms", "2ms"]), min_size=len(pairs), max_size=len(pairs)))
    hosts = ", ".join(f"n{index}: " for index in range(count))
    links = ", ".join(f"{{ends: [n{a}, n{b}], rtt: {rtt}}}" for (a, b), rtt in zip(pairs, rtts, strict=True))
    return f"hosts: {{{hosts}}}\nlinks: [{links}]"


@settings(max_examples=60)
@given(meshes())
def test_routes_lead_everywhere_without_loops_and_as_the_paths_say(text: str) -> None:
    plan = made(text)
    for path in plan.paths:
        way = walk(plan, path.source, plan.host(path.target).address)
        assert way == walk(plan, path.target, plan.host(path.source).address)[::-1]
        links = {link.name: set(link.ends) for link in plan.links}
        assert [set(step) for step in pairwise(way)] == [links[name] for name in path.links]
        for port in plan.host(path.target).ports:
            assert walk(plan, path.source, port.address)


@settings(max_examples=30)
@given(meshes())
def test_names_and_addresses_are_unique(text: str) -> None:
    plan = made(text)
    ports = [port for host in plan.hosts for port in host.ports]
    assert len({port.mac for port in ports}) == len(ports)
    assert len({link.name for link in plan.links}) == len(plan.links)
    addresses = [port.address for port in ports] + [host.address for host in plan.hosts]
    assert len(set(addresses)) == len(addresses)
    networks = [IPv4Network(link.subnet) for link in plan.links]
    assert not any(one.overlaps(other) for i, one in enumerate(networks) for other in networks[:i])


@pytest.mark.parametrize(("rate", "rtt", "expected"), [(50.0, 21.75, 260_938), (1.0, 0.0, 64_000), (None, 10.0, None)])
def test_queue_is_sized(rate: float | None, rtt: float, expected: int | None) -> None:
    assert default_bytes(rate, rtt) == expected


@pytest.mark.parametrize(
    ("rate", "delay", "jitter", "expected"),
    [(50.0, 1.0, 0.0, 1000), (50.0, 20.79, 0.0, 4061), (None, 20.0, 5.0, 156_250), (1e5, 1e4, 0.0, 1_000_000)],
)
def test_delay_never_drops(rate: float | None, delay: float, jitter: float, expected: int) -> None:
    assert delay_packets(rate, delay, jitter) == expected


SWITCHED = """
hosts: {a: , b: , c: , d: }
switches: {s1: , s2: {controller: builtin}, s3: {controller: "d:6633"}}
links:
  - {ends: [a, s1], rtt: 2ms, rate: 50mbit}
  - {ends: [s2, b], rtt: 4ms}
  - {ends: [s1, s2], rtt: 10ms, rate: 20mbit, subnet: 192.168.7.0/24}
  - {ends: [b, c], rtt: 1ms}
  - {ends: [s3, c]}
  - {ends: [s3, d]}
"""


def test_links_that_meet_in_switches_share_a_subnet_and_hosts_come_first() -> None:
    plan = made(SWITCHED)
    assert [link.subnet for link in plan.links] == ["192.168.7.0/24"] * 3 + ["10.20.0.0/24"] + ["10.20.1.0/24"] * 2
    assert [plan.host(name).ports[0].address for name in "ab"] == ["192.168.7.1", "192.168.7.2"]
    assert [switch.address for switch in plan.switches] == ["192.168.7.3", "192.168.7.4", "10.20.1.3"]
    assert [plan.far_address(link) for link in plan.links[:3]] == ["192.168.7.3", "192.168.7.2", "192.168.7.4"]
    assert [[port.name for port in switch.ports] for switch in plan.switches] == [["eth1", "eth2"]] * 3


def test_a_way_through_switches_has_all_their_links_and_the_next_host_as_gateway() -> None:
    plan = made(SWITCHED)
    path = plan.path("a", "d")
    assert path.links == ("a-s1", "s1-s2", "s2-b", "b-c", "s3-c", "s3-d")
    assert (path.rtt_ms, path.rate_mbit) == (17.0, 20.0)
    vias = {route.to: route.via for route in plan.routes_of("a")}
    assert vias == dict.fromkeys(("10.255.0.2/32", "10.255.0.3/32", "10.255.0.4/32"), "192.168.7.2") | {
        "10.20.0.0/24": "192.168.7.2",
        "10.20.1.0/24": "192.168.7.2",
    }
    assert {route.via for route in plan.routes_of("d")} == {"10.20.1.1"}


def test_unrouted_hosts_reach_each_other_through_switches_only() -> None:
    plan = made(f"{SWITCHED}routing: neighbours")
    reachable = {(path.source, path.target) for path in plan.paths if path.reachable}
    assert reachable == {("a", "b"), ("b", "c"), ("c", "d")}
    assert plan.path("a", "b").links == ("a-s1", "s1-s2", "s2-b")


def test_a_controller_is_an_address_that_the_switch_reaches() -> None:
    plan = made(SWITCHED)
    assert [switch.controller for switch in plan.switches] == [None, "127.0.0.1:6653", "10.20.1.2:6633"]
    assert [plan.asks_controller(plan.path(*pair)) for pair in ("ab", "bc", "cd")] == [True, False, True]


def test_neighbours_are_all_hosts_of_a_segment_and_no_switch() -> None:
    plan = made(SWITCHED)
    near = [(port.name, host.name, far.address) for port, host, far in plan.neighbours(plan.host("b"))]
    assert near == [("eth1", "a", "192.168.7.1"), ("eth2", "c", "10.20.0.2")]


def test_a_plan_stores_neither_routes_nor_paths_and_reads_documents_that_do() -> None:
    plan = shipped("ipv6")
    stored, printed = plan.model_dump_json(), plan_json(plan)
    assert plan.paths and plan.routes_of("ams") and plan.ipv6_routes_of("ams")
    assert '"routes"' not in stored and '"paths"' not in stored
    document = json.loads(printed)
    assert document["version"] == 1
    assert document["paths"] == [path.model_dump(mode="json") for path in plan.paths]
    for host, beside in zip(document["hosts"], document["ipv6"]["hosts"], strict=True):
        assert host["routes"] == [route.model_dump() for route in plan.routes_of(host["name"])]
        assert beside["routes"] == [route.model_dump() for route in plan.ipv6_routes_of(host["name"])]
    document["paths"][0]["links"].reverse()
    document["hosts"][0]["routes"] = []
    assert Plan.model_validate(document) == Plan.model_validate_json(stored) == plan
    assert plan_json(Plan.model_validate(document)) == printed


def test_a_copy_whose_links_are_others_has_paths_of_its_own() -> None:
    plan = made("hosts: {a: , b: , c: }\nlinks: [{ends: [a, b]}, {ends: [b, c], rtt: 2ms}]")
    assert (plan.path("a", "c").rtt_ms, plan.pairs) == (2, 3)
    fewer = plan.model_copy(update={"links": plan.links[:1]})
    assert [(path.source, path.target) for path in fewer.paths] == [("a", "b")]
    assert (fewer.pairs, plan.pairs) == (1, 3)
    assert plan.model_copy(update={"name": "y"}).paths == plan.paths


def test_links_that_are_set_otherwise_leave_the_ways_as_they_are() -> None:
    plan = made("hosts: {a: , b: , c: }\nlinks: [{ends: [a, b], rtt: 1ms}, {ends: [a, c], rtt: 2ms}, {ends: [c, b]}]")
    slow = (plan.links[0].model_copy(update={"rtt_ms": 9.0}), *plan.links[1:])
    assert plan.path("a", "b").links == ("a-b",)
    now = plan.set_to(plan.hosts, plan.switches, slow)
    assert (now.path("a", "b").links, now.path("a", "b").rtt_ms) == (("a-b",), 9)
    assert now.routes_of("a") == plan.routes_of("a")


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_one_path_is_as_it_stands_among_all(file: Path) -> None:
    plan = load(file)
    assert plan.pairs == len(plan.paths)
    for path in plan.paths:
        assert plan.path(path.source, path.target) == path
        assert plan.path(path.target, path.source) == path.turned
        assert plan.reaches(path.target, path.source) == path.reachable


ROW = "chain: {hosts: 1000, link: {rtt: 10ms, rate: 100mbit}}"
STAR = "star: {clients: 999, link: {rtt: 10ms, rate: 100mbit}}"


@pytest.mark.parametrize("shape", [ROW, STAR], ids=["row", "star"])
def test_a_plan_of_a_thousand_hosts_is_as_large_as_its_hosts_and_links(shape: str) -> None:
    plan = made(shape)
    assert (len(plan.hosts), plan.pairs) == (1000, 499_500)
    assert len(plan.model_dump_json()) < 1_500_000
    assert len(plan.routes_of(plan.hosts[1].name)) >= 999


def test_a_segment_of_a_thousand_hosts_gets_room_for_them() -> None:
    names = [f"h{number}" for number in range(999)]
    links = ", ".join(f"{{ends: [{name}, s], rtt: 2ms}}" for name in names)
    plan = made(f"hosts: {{{', '.join(f'{name}: ' for name in names)}}}\nswitches: {{s: }}\nlinks: [{links}]")
    assert {link.subnet for link in plan.links} == {"10.20.0.0/22"}
    assert plan.path("h0", "h998").rtt_ms == 4
    assert plan.switches[0].address == "10.20.3.232"


def test_a_plan_of_other_routing_forgets_the_paths_that_it_had() -> None:
    plan = made("chain: {hosts: [a, b, c]}")
    assert plan.path("a", "c").reachable
    assert not plan.model_copy(update={"routing": "neighbours"}).path("a", "c").reachable


@pytest.mark.parametrize("parts", [2, 3])
def test_hosts_that_no_link_joins_are_one_error(parts: int) -> None:
    links = ", ".join(f"{{ends: [a{part}, b{part}]}}" for part in range(parts))
    hosts = ", ".join(f"a{part}: , b{part}: " for part in range(parts))
    with pytest.raises(InputError, match=f"no link joins these {parts} groups of hosts: a0, b0"):
        made(f"hosts: {{{hosts}}}\nlinks: [{links}]")

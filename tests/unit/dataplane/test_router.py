"""Routes that the hosts find by OSPF or BGP: what a link costs, BIRD's configuration, and what is read back."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from minigts.dataplane import interfaces, router
from minigts.errors import InputError
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse
from minigts.topology.routes.graph import Edge, protocol_costs

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
PROTOCOLS = ("ospf", "bgp")
RING = """name: ring
routing: {routing}
{ipv6}
hosts: {{a: , b: , c: , d: }}
defaults: {{link: {{rtt: 10ms}}}}
links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [c, d]}}, {{ends: [d, a]}}]
"""


def ring(routing: str, ipv6: str = "ipv6: true") -> Plan:
    return parse(RING.format(routing=routing, ipv6=ipv6), "ring.yaml")


def lines_of(ways: router.ExpectedRoutes) -> list[str]:
    return [f"{to} {port}" for to, ports in ways.ports.items() for port in sorted(ports)]


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda path: str(path.stem))
def test_without_a_protocol_a_plan_says_nothing_of_costs(file: Path) -> None:
    made = load(file)
    assert ('"cost"' in plan_json(made)) == made.has_routers
    assert Plan.model_validate_json(plan_json(made)) == made


@pytest.mark.parametrize("routing", PROTOCOLS)
def test_the_plan_has_routes_and_the_host_sets_none_by_itself(routing: str) -> None:
    made = ring(routing)
    assert all(made.routes_of(host.name) for host in made.hosts)
    text = interfaces.script(made, made.hosts[0])
    assert "route replace" not in text
    assert "bird -c" in text
    assert text.index("\nEND\n") < text.index("bird -c")


def test_static_routes_are_as_they_were() -> None:
    static, found = ring("routed"), ring("ospf")
    assert "route replace" in interfaces.script(static, static.hosts[0])
    assert "bird" not in interfaces.script(static, static.hosts[0])
    assert [path.rtt_ms for path in static.paths] == [path.rtt_ms for path in found.paths]


@pytest.mark.parametrize("hosts", [4, 6, 12, 30])
def test_in_a_ring_of_equal_links_no_two_best_ways_cost_the_same(hosts: int) -> None:
    edges = [Edge((index, (index + 1) % hosts), 10.0) for index in range(hosts)]
    found = protocol_costs(hosts, edges, [f"link{index}" for index in range(hosts)])
    assert all(1 <= cost <= 65535 for cost in found)
    made = ring("ospf") if hosts == 4 else load(TOPOLOGIES / "ring6-ospf.yaml")
    ways = [router.expected_routes(made, host) for host in made.hosts]
    assert all(len(ports) == 1 for each in ways for ports in each.ports.values())


def test_the_way_of_lowest_round_trip_is_the_cheapest() -> None:
    triangle = [Edge((0, 1), 30.0), Edge((0, 2), 10.0), Edge((2, 1), 10.0)]
    direct, first, second = protocol_costs(3, triangle, ["direct", "first", "second"])
    assert first + second < direct


@pytest.mark.parametrize("routing", PROTOCOLS)
@pytest.mark.parametrize("file", ["ring", "ring6", "chain"])
def test_what_should_be_found_is_what_the_plan_says(routing: str, file: str) -> None:
    text = "name: x\nrouting: {}\nipv6: true\nchain: {{hosts: 5, link: {{rtt: 4ms}}}}\n"
    made = {
        "ring": ring(routing),
        "ring6": load(TOPOLOGIES / f"ring6-{routing}.yaml"),
        "chain": parse(text.format(routing), "chain.yaml"),
    }[file]
    for host in made.hosts:
        ways = router.expected_routes(made, host)
        by = {port.peer_address: port.name for port in host.ports}
        planned = {route.to.removesuffix("/32"): frozenset({by[route.via]}) for route in made.routes_of(host.name)}
        of_ipv6 = {to: ports for to, ports in ways.ports.items() if ":" in to}
        assert ways.ports == {**planned, **of_ipv6}
        assert len(of_ipv6) == (0 if made.ipv6 is None else len(planned))


def test_behind_a_cut_link_the_other_way_should_be_found() -> None:
    made = ring("ospf", "")
    host = made.host("a")
    neighbour = made.host("b").address
    assert router.expected_routes(made, host).ports[neighbour] == {"eth1"}
    assert router.expected_routes(made, host, {"a-b"}).ports[neighbour] == {"eth2"}
    assert not router.expected_routes(made, host, {"a-b", "d-a"}).ports


def test_a_segment_whose_far_end_is_cut_off_is_still_reached_by_the_near_one() -> None:
    chain = parse("name: x\nrouting: ospf\nchain: {hosts: 4, link: {rtt: 4ms}}\n", "chain.yaml")
    ways = router.expected_routes(chain, chain.hosts[0], {"h2-h3"}).ports
    assert ways == {chain.hosts[1].address: {"eth1"}, chain.links[1].subnet: {"eth1"}}


@pytest.mark.parametrize(("routing", "dark", "ports"), [
    ("ospf", [], {"eth1"}), ("ospf", ["h2"], None), ("ospf", ["h3"], {"eth1"}), ("bgp", ["h2", "h3"], {"eth1"})
])  # fmt: skip
def test_an_end_without_a_carrier_announces_no_segment_by_ospf(
    routing: str, dark: list[str], ports: set[str] | None
) -> None:
    chain = parse(f"name: x\nrouting: {routing}\nchain: {{hosts: 4, link: {{rtt: 4ms}}}}\n", "chain.yaml")
    ways = router.expected_routes(chain, chain.hosts[0], {"h2-h3"}, [("h2-h3", end) for end in dark]).ports
    assert ways.get(chain.links[1].subnet) == ports


def test_ospf_adds_what_a_far_segment_costs_its_router_and_bgp_does_not() -> None:
    links = "{ends: [a, b], cost: 10}, {ends: [a, c], cost: 20}, {ends: [b, c], cost: {to: 30, from: 5}}"
    near = {"ospf": "eth2", "bgp": "eth1"}
    for routing, port in near.items():
        made = parse(f"name: x\nrouting: {routing}\nhosts: {{a: , b: , c: }}\nlinks: [{links}]\n", "three.yaml")
        assert router.expected_routes(made, made.host("a")).ports[made.links[2].subnet] == {port}


def test_what_a_host_shows_is_held_against_the_plan() -> None:
    ways = router.expected_routes(ring("ospf"), ring("ospf").host("a"))
    right = lines_of(ways)
    assert router.differences(ways, right) == []
    to, port = right[0].split()
    other = {"eth1": "eth2", "eth2": "eth1"}[port]
    assert router.differences(ways, right[1:]) == [f"no route to {to}"]
    assert router.differences(ways, [f"{to} {other}", *right]) == [
        f"the route to {to} goes by {other}, should go by {port}"
    ]
    assert router.differences(ways, [*right, "10.9.9.0/24 eth1"]) == ["a route to 10.9.9.0/24, which is not planned"]


SHOWN = {"right": "{0} via 10.20.0.2 dev {1} proto bird", "astray": "{0} via 10.20.0.2 dev eth9 proto bird"}


@pytest.mark.parametrize(("shown", "code"), [("right", 0), ("astray", 1), ("none", 1)])
def test_a_host_waits_until_every_route_goes_where_it_should(tmp_path: Path, shown: str, code: int) -> None:
    """The script with an `ip` that shows the kernel's lines, and a `sleep` that takes no time."""
    made = ring("ospf", "")
    ways = router.expected_routes(made, made.host("a"))
    line = SHOWN.get(shown, "")
    table = "".join(line.format(to, *ports) + "\n" for to, ports in ways.ports.items())
    for name, text in (("ip", f"printf %s {shlex.quote(table)}"), ("sleep", "true")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    argv = ["bash", "-c", f'PATH="{tmp_path}:$PATH"\n' + router.wait(made, ways).replace("seq 240", "seq 2")]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.count("eth9") == (len(ways.ports) if shown == "astray" else 0)


def test_ospf_has_the_costs_and_the_timers_that_the_page_says() -> None:
    made = ring("ospf")
    text = router.configuration(made, made.host("a"))
    costs = {link.name: link.cost for link in made.links}
    for port, link in (("eth1", "a-b"), ("eth2", "d-a")):
        line = f'interface "{port}" {{ type ptp; cost {costs[link]}; hello 1; dead 4; }};'
        assert text.count(line) == 2
    assert "protocol ospf v2" in text
    assert "protocol ospf v3" in text
    assert text.count("kernel table 20;") == 2


@pytest.mark.parametrize(("routing", "asks"), [("ospf", "dead 4; bfd yes;"), ("bgp", "  bfd yes;")])
def test_bfd_is_asked_for_on_each_link_where_the_file_has_it(routing: str, asks: str) -> None:
    plain, made = ring(routing), ring(routing, "ipv6: true\nbfd: 50ms")
    assert (plain.bfd_ms, made.bfd_ms) == (None, 50)
    before, text = (router.configuration(each, each.host("a")) for each in (plain, made))
    assert "bfd" not in before
    assert text.count(asks) == 4
    for port in ("eth1", "eth2"):
        assert text.count(f'interface "{port}" {{ interval 50 ms; multiplier 3; }};') == 1


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("bfd: 100ms", "only a routing protocol asks for BFD: write `routing: ospf` or `bgp`, or take it out"),
        ("routing: ospf\nbfd: 1ms", "bfd"),
        ("routing: ospf\nbfd: often", "bfd"),
    ],
)
def test_bfd_that_nobody_asks_for_is_refused(written: str, says: str) -> None:
    with pytest.raises(InputError, match=r"x\.yaml:[23]: bfd") as refused:
        parse(f"name: x\n{written}\npair: {{}}\n", "x.yaml")
    assert says in str(refused.value)
    assert parse("name: x\nbfd: false\npair: {}\n", "x.yaml").bfd_ms is None


def test_bgp_has_a_system_for_each_host_and_a_session_for_each_link_and_family() -> None:
    made = ring("bgp")
    text = router.configuration(made, made.host("d"))
    assert text.count("protocol bgp") == 4
    assert text.count("as 64515;") == 4
    assert text.count("as 64512;") == text.count("as 64514;") == 2
    assert text.count("hold time 3; keepalive time 1;") == 4


@pytest.mark.parametrize("routing", ["ospf", "bgp"])
def test_a_host_tells_its_own_address_in_both_families(routing: str) -> None:
    made = ring(routing)
    host, beside = made.host("a"), made.ipv6_of("a")
    assert beside is not None
    text = router.configuration(made, host)
    for own in (f"{host.address}/32", f"{beside.address}/128"):
        assert (f"stubnet {own} {{ cost 1; }};" if routing == "ospf" else f"route {own} blackhole;") in text


def test_the_instance_of_ospf_is_that_of_version_2_alone() -> None:
    made = ring("ospf")
    second, third = router.configuration(made, made.host("a")).split("protocol ospf v3")
    assert second.count("instance id 64;") == 1
    assert "instance id" not in third


def test_bgp_tells_the_segments_at_a_host_each_in_its_family() -> None:
    made = ring("bgp")
    second, third = router.configuration(made, made.host("a")).split("protocol static own6")
    subnets = [link.subnet for link in made.links if "a" in link.ends]
    assert all(f"route {subnet} blackhole;" in second and subnet not in third for subnet in subnets)


def test_a_host_on_its_own_finds_nothing_and_gives_the_kernel_nothing() -> None:
    alone = parse("name: x\nrouting: ospf\nhosts: {a: }\n", "t.yaml")
    host: Host = alone.hosts[0]
    assert "export none" in router.configuration(alone, host)
    assert router.expected_routes(alone, host).ports == {}


@pytest.mark.parametrize("routing", PROTOCOLS)
def test_switches_are_refused_with_what_would_be_right(routing: str) -> None:
    text = (
        f"name: x\nrouting: {routing}\nhosts: {{a: , b: }}\nswitches: {{s: }}\n"
        "links: [{ends: [a, s]}, {ends: [s, b]}]\n"
    )
    with pytest.raises(InputError, match=rf"(?s)t.yaml:2: routing: {routing} runs only on links.*: s.*routing: routed"):
        parse(text, "t.yaml")


@pytest.mark.parametrize("routing", PROTOCOLS)
def test_hosts_that_no_link_joins_are_refused(routing: str) -> None:
    with pytest.raises(InputError, match="no link joins"):
        parse(f"name: x\nrouting: {routing}\nhosts: {{a: , b: }}\nlinks: []\n", "t.yaml")

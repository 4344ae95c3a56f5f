"""Several equal ways (ECMP), costs, and ways back that are others: against every path that a small graph has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from path_cells import cell
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.dataplane import interfaces, router
from minigts.dataplane.round_trip import echo_ms, echo_range_ms, frames_range_ns
from minigts.dataplane.shown_state import Shown, differences, read
from minigts.errors import InputError
from minigts.fidelity.certificate import rtt_row
from minigts.judge.latency import as_declared, segment_sums, sum_of_segments
from minigts.topology.edit import add_link
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse
from minigts.topology.to_network import network_of

NAMES = "abcdef"
DIAMOND = """name: diamond
routing: {routing}
ecmp: {ecmp}
defaults: {{link: {{delay: 2ms, rate: 50mbit{cost}}}}}
hosts: {{a: , b: , c: , d: , e: }}
links:
  - {{ends: [a, b]}}
  - {{ends: [a, c]}}
  - {{ends: [b, d], rate: 20mbit}}
  - {{ends: [c, d]}}
  - {{ends: [d, e], delay: {{to: 1ms, from: 3ms}}}}
"""


def diamond(routing: str = "routed", ecmp: str = "true", cost: str = "") -> Plan:
    return parse(DIAMOND.format(routing=routing, ecmp=ecmp, cost=cost), "d.yaml", time="virtual")


@dataclass(frozen=True)
class Small:
    """A connected graph of links: two ends by number, the delays and the costs of both directions."""

    count: int
    links: tuple[tuple[int, int, tuple[int, int], tuple[int, int]], ...]

    def topology(self, *, ecmp: bool, costs: bool) -> str:
        hosts = ", ".join(f"{name}: " for name in NAMES[: self.count])
        lines = [f"name: small\necmp: {str(ecmp).lower()}\nhosts: {{{hosts}}}\nlinks:"]
        for first, second, (to, back), (cost, cost_back) in self.links:
            priced = f", cost: {{to: {cost}, from: {cost_back}}}" if costs else ""
            ends = f"[{NAMES[first]}, {NAMES[second]}]"
            lines.append(f"  - {{ends: {ends}, delay: {{to: {to}ms, from: {back}ms}}{priced}}}")
        return "\n".join([*lines, ""])

    def paths(self, source: int, target: int) -> Iterator[list[tuple[int, int]]]:
        """Every path without a loop: its links, each with the direction that it is crossed in."""
        waiting: list[tuple[int, list[tuple[int, int]], frozenset[int]]] = [(source, [], frozenset({source}))]
        while waiting:
            here, passed, seen = waiting.pop()
            if here == target:
                yield passed
                continue
            for number, (first, second, _, _) in enumerate(self.links):
                for direction, (start, end) in enumerate(((first, second), (second, first))):
                    if start == here and end not in seen:
                        waiting.append((end, [*passed, (number, direction)], seen | {end}))

    def best(self, source: int, target: int, *, ecmp: bool, costs: bool) -> list[list[tuple[int, int]]]:
        def cost(path: list[tuple[int, int]]) -> tuple[int, ...]:
            own = sum(self.links[number][3][way] if costs else sum(self.links[number][2]) for number, way in path)
            parts = (own,) if costs else (own, len(path))
            return parts if ecmp else (*parts, sum(1 << number for number, _ in path))

        every = sorted(self.paths(source, target))
        least = min(map(cost, every))
        return [path for path in every if cost(path) == least]

    def delay_ms(self, path: list[tuple[int, int]]) -> int:
        return sum(self.links[number][2][way] for number, way in path)


@st.composite
def graphs(draw: st.DrawFn) -> Small:
    count = draw(st.integers(2, 5))
    both = st.tuples(st.integers(1, 2), st.integers(1, 2))
    joined = [(draw(st.integers(0, number - 1)), number) for number in range(1, count)]
    any_two = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda ends: ends[0] != ends[1])
    joined += draw(st.lists(any_two, max_size=4))
    return Small(count, tuple((*ends, draw(both), draw(both)) for ends in joined))


def followed(plan: Plan, source: str, target: str) -> set[tuple[str, ...]]:
    """Every way that packets take, by the routes of each host on it."""
    address = plan.host(target).address
    owners = {port.address: (host.name, port.link) for host in plan.hosts for port in host.ports}
    found, waiting = set(), [(source, ())]
    while waiting:
        here, passed = waiting.pop()
        assert len(passed) < 10, "a loop"
        if here == target:
            found.add(passed)
            continue
        (route,) = (each for each in plan.routes_of(here) if each.to == f"{address}/32")
        waiting += [(owners[via][0], (*passed, owners[via][1])) for via in (route.via, *route.also)]
    return found


FEWER_HOPS = Small(3, ((0, 1, (1, 1), (1, 1)), (0, 2, (1, 1), (1, 1)), (1, 2, (1, 1), (2, 2))))
"""Between the last two, two links cost as much as one that the file names later."""


@settings(max_examples=60, deadline=None)
@example(graph=FEWER_HOPS, ecmp=False, costs=True)
@given(graph=graphs(), ecmp=st.booleans(), costs=st.booleans())
def test_the_ways_and_figures_of_a_plan_are_those_of_all_best_paths(graph: Small, ecmp: bool, costs: bool) -> None:
    plan = parse(graph.topology(ecmp=ecmp, costs=costs), "s.yaml", time="virtual")
    names = [link.name for link in plan.links]

    def named(paths: list[list[tuple[int, int]]]) -> set[tuple[str, ...]]:
        return {tuple(names[number] for number, _ in path) for path in paths}

    for source in range(graph.count):
        for target in range(graph.count):
            if source == target:
                continue
            there, back = (graph.best(*ends, ecmp=ecmp, costs=costs) for ends in ((source, target), (target, source)))
            path = plan.path(NAMES[source], NAMES[target])
            assert (set(path.each_there), set(path.each_back)) == (named(there), named(back))
            delays = [graph.delay_ms(way) for way in there], [graph.delay_ms(way) for way in back]
            most = path.rtt_ms if path.rtt_most_ms is None else path.rtt_most_ms
            assert (path.rtt_ms, most) == (sum(map(min, delays)), sum(map(max, delays)))
            assert followed(plan, path.source, path.target) == named(there)
            assert echo_range_ms(plan, path) == pytest.approx((path.rtt_ms, most))
        own = {(path.source, path.target): path for path in plan.paths_from(NAMES[source])}
        assert own == {ends: plan.path(*ends) for ends in own}


def test_a_clos_uses_all_its_spines_with_ecmp() -> None:
    text = "name: clos\n{}clos: {{spines: 3, leaves: 3, hosts: 1, link: {{rtt: 1ms}}}}\n"
    alone, spread = (parse(text.format(key), "c.yaml").path("h1", "h2") for key in ("", "ecmp: true\n"))
    assert (len(alone.each_there), alone.ways_there) == (1, ())
    assert {links[1] for links in spread.each_there} == {f"leaf1-spine{number}" for number in (1, 2, 3)}
    assert (alone.rtt_ms, alone.hops) == (spread.rtt_ms, spread.hops)


def test_where_there_is_one_way_ecmp_changes_no_path() -> None:
    chain = "name: chain\n{}chain: {{hosts: 4, link: {{delay: {{to: 1ms, from: 2ms}}, rate: 5mbit, loss: 1%}}}}\n"
    plain, spread = (parse(chain.format(key), "c.yaml") for key in ("", "ecmp: layer3\n"))
    assert plain.paths == spread.paths
    assert '"ways_there"' not in plan_json(spread)
    assert [plain.routes_of(host.name) for host in plain.hosts] == [
        spread.routes_of(host.name) for host in spread.hosts
    ]


def test_a_path_has_the_range_of_its_ways() -> None:
    path = diamond().path("a", "e")
    assert (path.rtt_ms, path.rtt_most_ms, path.rate_mbit) == (12.0, None, 20.0)
    assert (path.tcp_least_mbit, path.tcp_ceiling_mbit) == (round(20 * 1448 / 1514, 6), round(50 * 1448 / 1514, 6))
    assert path.crossed == {link.name for link in diamond().links}
    assert path.turned == diamond().path("e", "a")


def test_more_ways_than_are_listed_are_counted_as_such_and_all_their_links_known() -> None:
    """Seven diamonds in a row have 128 ways."""
    links = [
        f"  - {{ends: [{first}, {second}]}}"
        for number in range(7)
        for middle in (f"u{number}", f"v{number}")
        for first, second in ((f"x{number}", middle), (middle, f"x{number + 1}"))
    ]
    names = [f"x{number}" for number in range(8)] + [f"{side}{number}" for number in range(7) for side in "uv"]
    hosts = f"hosts: {{{', '.join(f'{each}: ' for each in names)}}}"
    plan = parse("\n".join(["name: n", "ecmp: true", hosts, "links:", *links, ""]), "n.yaml")
    path = plan.path("x0", "x7")
    assert (len(path.each_there), len(path.crossed)) == (64, 28)
    assert path.also_over
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_settings_of_a_link_change_figures_and_no_way() -> None:
    plan = diamond()
    slower = [link if link.name != "a-b" else link.model_copy(update={"rtt_ms": 40.0}) for link in plan.links]
    changed = plan.set_to(plan.hosts, plan.switches, tuple(slower))
    path = changed.path("a", "d")
    assert (path.rtt_ms, path.rtt_most_ms) == (8.0, 44.0)
    assert path.each_there == plan.path("a", "d").each_there


@pytest.mark.parametrize(("ecmp", "policy"), [("layer3", 0), ("layer4", 1)])
def test_hosts_hash_by_what_the_file_says_each_with_a_seed_of_its_own(ecmp: str, policy: int) -> None:
    plan = diamond(ecmp=ecmp)
    scripts = [interfaces.script(plan, host) for host in plan.hosts]
    assert all(f"echo {policy} >/proc/sys/net/ipv4/fib_multipath_hash_policy" in text for text in scripts)
    seeds = {line for text in scripts for line in text.splitlines() if "hash_seed" in line}
    assert len(seeds) == len(plan.hosts)
    wanted = f"route replace {plan.host('d').address}/32 src 10.255.0.1 nexthop via 10.20.0.2 nexthop via 10.20.1.2"
    assert wanted in scripts[0]
    assert "fib_multipath" not in interfaces.script(diamond(ecmp="false"), diamond(ecmp="false").hosts[0])


ROUTES = """
10.20.0.0/24 dev eth1 proto kernel scope link src 10.20.0.1
10.20.1.0/24 dev eth2 proto kernel scope link src 10.20.1.1
{}--routes of IPv6--
--forwarding--
1
"""


def shown_on_a(plan: Plan, ways: dict[str, list[str]]) -> Shown:
    host = plan.host("a")
    devices = [
        {"ifname": "lo", "flags": ["UP"], "addr_info": [{"family": "inet", "local": host.address, "prefixlen": 32}]},
        *(
            {
                "ifname": port.name,
                "flags": ["UP"],
                "addr_info": [{"family": "inet", "local": port.address, "prefixlen": port.prefix}],
            }
            for port in host.ports
        ),
    ]
    device = {port.peer_address: port.name for port in host.ports}
    lines = []
    for to, vias in ways.items():
        if len(vias) == 1:
            lines.append(f"{to} via {vias[0]} dev {device[vias[0]]} src {host.address}")
        else:
            hops = [f"\tnexthop via {via} dev {device[via]} weight 1 " for via in vias]
            lines += [f"{to} src {host.address} ", *hops]
    return read(devices, ROUTES.format("".join(f"{line}\n" for line in lines)))


def test_routes_over_several_ways_are_read_back_in_any_order() -> None:
    plan = diamond()
    host = plan.host("a")
    ways = {route.to: [route.via, *route.also] for route in plan.routes_of("a")}
    assert max(map(len, ways.values())) == 2
    assert differences(plan, host, shown_on_a(plan, ways), host.ports) == []
    turned = {to: vias[::-1] for to, vias in ways.items()}
    assert differences(plan, host, shown_on_a(plan, turned), host.ports) == []
    d = f"{plan.host('d').address}/32"
    (found,) = differences(plan, host, shown_on_a(plan, ways | {d: ["10.20.0.2"]}), host.ports)
    assert found.text == f"the route to {d} goes by 10.20.0.2, should go by 10.20.0.2 and 10.20.1.2"
    b = f"{plan.host('b').address}/32"
    (more,) = differences(plan, host, shown_on_a(plan, ways | {b: ["10.20.0.2", "10.20.1.2"]}), host.ports)
    assert more.text == f"the route to {b} goes by 10.20.0.2 and 10.20.1.2, should go by 10.20.0.2"


@pytest.mark.parametrize("routing", ["ospf", "bgp"])
def test_a_protocol_is_told_to_take_all_equal_ways_and_each_is_expected(routing: str) -> None:
    plan = diamond(routing=routing)
    assert len({link.cost for link in plan.links if link.rtt_ms == 4}) == 1
    text = router.configuration(plan, plan.host("a"))
    assert ("ecmp yes limit 64;" in text, "path metric no;" in text) == (routing == "ospf", routing == "bgp")
    assert "merge paths yes limit 64;" in text
    ways = router.expected_routes(plan, plan.host("a"))
    to = plan.host("d").address
    assert ways.ports[to] == {"eth1", "eth2"}
    lines = [f"{each} {port}" for each, ports in ways.ports.items() for port in ports]
    assert router.differences(ways, lines) == []
    lines.remove(f"{to} eth2")
    assert router.differences(ways, lines) == [f"the route to {to} should go by eth2, too"]
    behind_a_cut = router.expected_routes(plan, plan.host("a"), {"c-d"})
    assert behind_a_cut.ports[to] == {"eth1"}
    plain = router.configuration(diamond(routing=routing, ecmp="false"), plan.host("a"))
    assert not any(word in plain for word in ("merge paths", "path metric", "ecmp yes"))


def test_a_cost_of_each_direction_is_the_senders_in_both_protocols() -> None:
    for routing in ("ospf", "bgp"):
        plan = diamond(routing=routing, ecmp="false", cost=", cost: {to: 7, from: 9}")
        first, second = (router.configuration(plan, plan.host(name)) for name in "ab")
        words = 'interface "eth1" {{ type ptp; cost {};' if routing == "ospf" else "bgp_med = bgp_med + {};"
        assert words.format(7) in first
        assert words.format(9) in second


UNEVEN = DIAMOND.replace("[a, c]}}", "[a, c], delay: {{to: 1ms, from: 3ms}}}}")


@pytest.mark.parametrize(
    ("rtt_ms", "word"), [(6.9, "failed"), (7.0, "held"), (8.0, "held"), (9.0, "held"), (9.1, "failed")]
)
def test_a_claim_takes_any_sum_between_those_of_the_ways(rtt_ms: float, word: str) -> None:
    plan = parse(UNEVEN.format(routing="routed", ecmp="true", cost=""), "u.yaml", time="virtual")
    path = plan.path("a", "d")
    assert (path.rtt_ms, path.rtt_most_ms) == (7.0, 9.0)
    singles = [cell(plan.path(*link.ends), link.rtt_ms, plan) for link in plan.links]
    (found,) = segment_sums([*singles, cell(path, rtt_ms, plan)], plan)
    assert found.total_ms == min(max(rtt_ms, 7.0), 9.0)
    assert sum_of_segments([*singles, cell(path, rtt_ms, plan)], plan).word == word
    of_file = plan.model_copy(update={"time": "real"})
    row = rtt_row(of_file, "a-d", path, [rtt_ms])
    assert row.declared == found.total_ms
    assert as_declared([cell(path, 9.0, of_file)], of_file).word == "held"


def test_a_path_whose_way_back_is_longer_is_no_segment() -> None:
    text = DIAMOND.format(routing="routed", ecmp="false", cost=", cost: 10")
    text = text.replace("[a, b]}", "[a, b], cost: {to: 1, from: 100}}")
    plan = parse(text, "d.yaml", time="virtual")
    path = plan.path("a", "b")
    assert (path.links, path.each_back[0], path.rtt_ms) == (("a-b",), ("b-d", "c-d", "a-c"), 8.0)
    own = [cell(plan.path(*link.ends), link.rtt_ms, plan) for link in plan.links]
    assert sum_of_segments([*own, cell(plan.path("a", "d"), plan.path("a", "d").rtt_ms, plan)], plan).word == "held"
    assert frames_range_ns(plan, path, 98)[0] == pytest.approx(1e6 * echo_ms(plan, path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("routing: neighbours\necmp: true\npair: {}\n", r"t\.yaml:3: ecmp: `routing: neighbours` leaves hosts without"),
        (
            "routing: neighbours\npair: {link: {cost: 5}}\n",
            r"t\.yaml:3: pair: `routing: neighbours`.*a cost has no effect",
        ),
        (
            "ecmp: maybe\npair: {}\n",
            r"t\.yaml:2: ecmp: 'maybe' does not say how flows are spread: write true, false, layer3",
        ),
        ("ecmp: [layer3]\npair: {}\n", r"t\.yaml:2: ecmp: "),
        ("pair: {link: {cost: 0}}\n", r"t\.yaml:2: pair\.link\.cost: .*a cost.*1 to 65535"),
        ("pair: {link: {cost: {to: 5}}}\n", r"t\.yaml:2: pair\.link\.cost: 'from' is missing"),
        (
            "pair: {link: {cost: 5}}\nhosts: {h3: }\nlinks: [{ends: [h2, h3]}]\n",
            r"t\.yaml:4: links\[0\]: no cost, and pair has one",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(f"name: t\n{text}", "t.yaml")


def test_a_link_that_is_added_needs_a_cost_where_others_have_one() -> None:
    plan = diamond(cost=", cost: 10")
    with pytest.raises(InputError, match=r"no cost, and links\.a-b has one"):
        add_link(plan, "a", "e", {"rtt": "1ms"})
    shorter = add_link(plan, "a", "e", {"rtt": "1ms", "cost": "10"})
    assert shorter.path("a", "e").each_there == (("a-e",),)
    with pytest.raises(InputError, match=r"links\.a-b: no cost, and links\.a-e has one"):
        add_link(diamond(), "a", "e", {"rtt": "1ms", "cost": "10"})


def test_other_formats_are_told_apart() -> None:
    lost = network_of(diamond(cost=", cost: 10")).lost
    assert any(line.startswith("ecmp of ") for line in lost)
    assert any(line.startswith("cost of ") for line in lost)


def test_plan_shows_all_ways(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text(UNEVEN.format(routing="routed", ecmp="layer3", cost=""))
    shown = CliRunner().invoke(app, ["plan", str(file)]).stdout
    assert "flows are spread over all equally good ways, by a hash of addresses\n" in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("a – d"))
    assert row.split("\t")[1:4] == ["2", "2", "7 to 9.00 ms"]
    file.write_text(DIAMOND.format(routing="routed", ecmp="false", cost=", cost: {to: 1, from: 2}"))
    assert "a – d\t2" in CliRunner().invoke(app, ["plan", str(file)]).stdout

"""Routes that a file gives single hosts: against what packets do that follow each host's routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_cells import cell
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.dataplane import interfaces
from minigts.dataplane.round_trip import echo_range_ms
from minigts.errors import InputError
from minigts.judge.latency import segment_sums, sum_of_segments
from minigts.topology.difference import difference
from minigts.topology.edit import add_host, add_link, remove_host, remove_link
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse
from minigts.topology.renumber import renumber_plan
from minigts.topology.to_network import network_of

NAMES = "abcdef"
DIAMOND = """name: diamond
{extra}
defaults: {{link: {{delay: 2ms, rate: 50mbit}}}}
hosts:
  a: {a}
  b: {b}
  c: {c}
  d: {d}
  e: {e}
links:
  - {{ends: [a, b]}}
  - {{ends: [a, c], delay: 3ms}}
  - {{ends: [b, d], rate: 20mbit}}
  - {{ends: [c, d], loss: 1%}}
  - {{ends: [d, e], delay: {{to: 1ms, from: 3ms}}}}
"""


def text(extra: str = "", **routes: str) -> str:
    return DIAMOND.format(
        extra=extra, **{name: f"{{routes: {{{routes[name]}}}}}" if name in routes else "" for name in "abcde"}
    )


def diamond(extra: str = "", **routes: str) -> Plan:
    return parse(text(extra, **routes), "d.yaml", time="virtual")


def owners(plan: Plan) -> dict[str, tuple[str, str]]:
    return {port.address: (host.name, port.link) for host in plan.hosts for port in host.ports}


def followed(
    tables: dict[str, dict[str, list[str]]], at: dict[str, tuple[str, str]], start: str, end: str, to: str
) -> set[tuple[str, ...]]:
    """Every way of packets by the hosts' tables; a way of more links than hosts is a ring."""
    found, waiting = set(), [(start, ())]
    while waiting:
        here, passed = waiting.pop()
        if len(passed) > len(tables):
            return {("ring",)}
        if here == end:
            found.add(passed)
            continue
        waiting += [(at[via][0], (*passed, at[via][1])) for via in tables[here][to]]
    return found


@st.composite
def labs(draw: st.DrawFn) -> tuple[str, dict[str, dict[str, str]]]:
    """A file with links alone, and routes of some hosts by neighbours."""
    count = draw(st.integers(3, 6))
    pairs = {tuple(sorted((number, draw(st.integers(0, number - 1))))) for number in range(1, count)}
    any_two = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda ends: ends[0] < ends[1])
    pairs |= set(draw(st.lists(any_two, max_size=4)))
    links = [f"  - {{ends: [{NAMES[a]}, {NAMES[b]}], rtt: {draw(st.integers(1, 3))}ms}}" for a, b in sorted(pairs)]
    beside = {n: [b if a == n else a for a, b in sorted(pairs) if n in (a, b)] for n in range(count)}
    routes: dict[str, dict[str, str]] = {}
    for number in draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3)):
        for target in draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2)) - {number}:
            via = draw(st.sampled_from(beside[number]))
            routes.setdefault(NAMES[number], {})[NAMES[target]] = NAMES[via]
    ecmp = draw(st.sampled_from(["true", "false"]))
    hosts = [f"  {name}:" for name in NAMES[:count]]
    return "\n".join([f"name: s\necmp: {ecmp}\nhosts:", *hosts, "links:", *links, ""]), routes


@settings(max_examples=60, deadline=None)
@given(labs())
def test_paths_follow_the_routes_of_each_host_and_a_ring_is_refused(lab: tuple[str, dict[str, dict[str, str]]]) -> None:
    file, routes = lab
    best = parse(file, "s.yaml", time="virtual")
    at, names = owners(best), [host.name for host in best.hosts]
    own = {host.name: f"{host.address}/32" for host in best.hosts}
    tables = {
        host.name: {route.to: [route.via, *route.also] for route in best.routes_of(host.name)} for host in best.hosts
    }
    for name, written in routes.items():
        for to, via in written.items():
            (address,) = (far.address for _, other, far in best.neighbours(best.host(name)) if other.name == via)
            tables[name][own[to]] = [address]
    ways = {
        (start, end): followed(tables, at, start, end, own[end]) for start in names for end in names if start != end
    }
    whole = file
    for name, written in routes.items():
        words = ", ".join(f"{to}: {via}" for to, via in written.items())
        whole = whole.replace(f"\n  {name}:\n", f"\n  {name}: {{routes: {{{words}}}}}\n")
    if {("ring",)} in ways.values():
        with pytest.raises(InputError, match="would go in a ring"):
            parse(whole, "s.yaml", time="virtual")
        return
    plan = parse(whole, "s.yaml", time="virtual")
    rtts = {link.name: link.rtt_ms for link in plan.links}
    for (start, end), there in ways.items():
        path, back = plan.path(start, end), ways[end, start]
        assert (set(path.each_there), set(path.each_back)) == (there, back)
        totals = [[sum(rtts[link] / 2 for link in way) for way in each] for each in (there, back)]
        most = path.rtt_ms if path.rtt_most_ms is None else path.rtt_most_ms
        assert (path.rtt_ms, most) == (sum(map(min, totals)), sum(map(max, totals)))
        assert {route.to: [route.via, *route.also] for route in plan.routes_of(start)} == tables[start]
        assert echo_range_ms(plan, path) == pytest.approx((path.rtt_ms, most))
    assert [*plan.paths] == [plan.path(one, two) for n, one in enumerate(names) for two in names[n + 1 :]]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert Plan.model_validate_json(plan_json(plan)) == plan


def test_the_way_there_and_the_way_back_differ_with_all_their_figures() -> None:
    plan = diamond(a="d: c")
    path = plan.path("a", "d")
    assert (path.each_there, path.each_back) == ((("a-c", "c-d"),), (("b-d", "a-b"),))
    assert path.rtt_ms == 3 + 2 + 2 + 2
    there, back = path.ways
    assert (there.rate_mbit, back.rate_mbit) == (50.0, 20.0)
    assert (there.loss_percent, back.loss_percent) == (1.0, 0.0)
    assert plan.path("a", "e") == diamond().path("a", "e")


def test_sums_of_segments_are_those_of_the_way_there_and_the_way_back() -> None:
    plan = diamond(a="d: c")

    singles = [cell(plan.path(*link.ends), link.rtt_ms, plan) for link in plan.links]
    (found,) = segment_sums([*singles, cell(plan.path("a", "d"), 9.0, plan)], plan)
    assert found.total_ms == 9.0
    assert sum_of_segments([*singles, cell(plan.path("a", "d"), 9.0, plan)], plan).word == "held"
    assert sum_of_segments([*singles, cell(plan.path("a", "d"), 8.0, plan)], plan).word == "failed"


def test_a_network_takes_all_that_lies_in_it_and_the_longest_prefix_wins() -> None:
    plan = diamond(a='"0.0.0.0/0": c, d: b, "10.9.0.0/16": b', c="b: d")
    via = {route.to: route.via for route in plan.routes_of("a")}
    b, c = "10.20.0.2", "10.20.1.2"
    assert via["10.255.0.4/32"] == via["10.9.0.0/16"] == b
    assert {via[each] for each in ("10.255.0.5/32", "10.255.0.3/32", "10.20.2.0/24", "0.0.0.0/0")} == {c}
    assert not {"10.20.0.0/24", "10.20.1.0/24"} & via.keys()
    assert {route.source for route in plan.routes_of("a")} == {"10.255.0.1"}
    script = interfaces.script(plan, plan.host("a"))
    assert f"route replace 10.9.0.0/16 via {b} src 10.255.0.1" in script
    assert f"route replace 0.0.0.0/0 via {c} src 10.255.0.1" in script


def test_ipv6_takes_the_same_ways() -> None:
    plan = diamond("ipv6: true", a='d: c, "10.9.0.0/16": b')
    four, six = plan.routes_of("a"), plan.ipv6_routes_of("a")
    assert [each.to for each in four][-1] == "10.9.0.0/16"
    assert len(six) == len(four) - 1
    beside = plan.ipv6_of("d")
    assert beside is not None
    (route,) = (each for each in six if each.to == f"{beside.address}/128")
    far = plan.ipv6_of("c")
    assert far is not None
    assert route.via == far.port("eth1").address


SWITCHED = """name: s
hosts: {{a: {{routes: {{d: {via}}}}}, b: , c: , d: }}
switches: {{s1: , s2: }}
links:
  - {{ends: [a, s1], rtt: 1ms}}
  - {{ends: [b, s1], rtt: 1ms}}
  - {{ends: [s1, s2], rtt: 1ms}}
  - {{ends: [c, s2], rtt: 1ms}}
  - {{ends: [b, d], rtt: 4ms}}
  - {{ends: [c, d], rtt: 2ms}}
"""


def test_a_way_through_switches_has_all_their_links() -> None:
    assert parse(SWITCHED.format(via="c"), "s.yaml").path("a", "d").each_there == (("a-s1", "s1-s2", "c-s2", "c-d"),)
    path = parse(SWITCHED.format(via="b"), "s.yaml").path("a", "d")
    assert (path.each_there, path.each_back) == ((("a-s1", "b-s1", "b-d"),), (("c-d", "c-s2", "s1-s2", "a-s1"),))
    assert path.rtt_ms == (1 + 1 + 4 + 2 + 1 + 1 + 1) / 2


def test_of_two_links_to_a_neighbour_an_address_says_which() -> None:
    file = "name: p\nhosts: {{a: {{routes: {{b: {}}}}}, b: }}\n"
    file += "links: [{{ends: [a, b], rtt: 1ms}}, {{ends: [a, b], rtt: 5ms}}]\n"
    with pytest.raises(
        InputError, match=r"a and b share 2 segments: write one of the addresses .*10\.20\.1\.2 on a-b-2"
    ):
        parse(file.format("b"), "p.yaml")
    path = parse(file.format("10.20.1.2"), "p.yaml").path("a", "b")
    assert (path.each_there, path.each_back, path.rtt_ms) == ((("a-b-2",),), (("a-b",),), 3.0)


def test_a_route_over_a_vlan_of_a_trunk_is_that_vlans() -> None:
    file = """name: v
hosts: {a: {routes: {c: r}}, r: , c: , q: }
switches: {s: }
links:
  - {ends: [a, s], vlan: 10}
  - {ends: [r, s], vlans: [10, 20], rtt: 8ms}
  - {ends: [c, s], vlan: 20}
  - {ends: [q, s], vlans: [10, 20]}
"""
    path = parse(file, "v.yaml").path("a", "c")
    assert path.each_there == (("a-s", "r-s", "r-s", "c-s"),)
    assert path.each_back == (("c-s", "q-s", "q-s", "a-s"),)


@pytest.mark.parametrize(
    ("extra", "routes", "message"),
    [
        ("", {"a": "d: e"}, r"d\.yaml:5: hosts\.a\.routes\.d: a: 'e' is no neighbour of a.*neighbours are b, c"),
        ("", {"a": "x: b"}, r"d\.yaml:5: hosts\.a\.routes\.x: a: no host 'x'; hosts are a, b, c, d, e"),
        ("", {"a": "d: b", "b": "d: a"}, r"d\.yaml:5: .*packets to d would go in a ring: a -> b -> a\n.*d\.yaml:6: "),
        ("", {"a": '"10.9.0.0/16": b', "b": '"10.0.0.0/8": a'}, r"packets to 10\.9\.0\.0/16 would go in a ring"),
        ("", {"a": '"10.9.0.1/16": b'}, r"'10\.9\.0\.1/16' is no destination of a route"),
        ("", {"a": "d: 10.20.2.1"}, r"'10\.20\.2\.1' is no neighbour of a"),
        ("", {"a": "a: b"}, r"a route of a to itself"),
        ("", {"a": '"10.20.0.0/24": c'}, r"a is on 10\.20\.0\.0/24 itself, by eth1"),
        ("", {"a": '"10.20.0.2/32": c'}, r"a is on 10\.20\.0\.0/24 itself, by eth1"),
        ("", {"a": 'd: b, "10.255.0.4/32": c'}, r"a second route to 10\.255\.0\.4/32, which is d's"),
        ("routing: neighbours", {"a": "d: b"}, r"hosts\.a\.routes: .*leaves hosts without routes"),
        ("routing: ospf", {"a": "d: b"}, r"hosts\.a\.routes: the hosts find their routes by ospf: write"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(extra: str, routes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=f"(?s){message}"):
        diamond(extra, **routes)


@pytest.mark.parametrize("written", ["[d]", "{}", "{d: [b]}", "{d: }", "{D_: b}", "b", "{d: b:c}"])
def test_other_shapes_are_refused(written: str) -> None:
    with pytest.raises(InputError, match=r"d\.yaml:5: hosts\.a\.routes"):
        parse(text().replace("  a: \n", f"  a: {{routes: {written}}}\n"), "d.yaml")


def test_a_ring_on_the_way_to_a_segment_is_refused() -> None:
    """Host b sends what goes to the segment behind c back to a, whose best way there is by b."""
    links = "links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, d]}]"
    text = f"name: x\nhosts: {{a: , b: {{routes: {{10.20.2.0/24: a}}}}, c: , d: }}\n{links}\n"
    with pytest.raises(InputError, match=r"packets to 10\.20\.2\.0/24 would go in a ring: b -> a -> b"):
        parse(text, "ring.yaml")


def test_a_default_way_out_is_one() -> None:
    file = "name: g\ntime: real\nhosts: {a: {gateway: true, routes: {0.0.0.0/0: b}}, b: }\nlinks: [{ends: [a, b]}]\n"
    with pytest.raises(InputError, match=r"a has a `gateway:`"):
        parse(file, "g.yaml")


def test_a_lab_that_changes_keeps_its_routes_or_refuses() -> None:
    plan = diamond(a="d: c")
    with pytest.raises(InputError, match=r"would not hold any more: host a: routes.d: c is no neighbour of a"):
        remove_link(plan, "a-c")
    with pytest.raises(InputError, match=r"would not hold any more: host a: routes.d: no host 'd'"):
        remove_host(add_link(plan, "e", "b", {}), "d")
    with pytest.raises(InputError, match="in a ring: c -> a -> c"):
        add_link(diamond(c="e: a"), "a", "e", {"delay": "9ms"}) and remove_link(diamond(c="e: a"), "b-d")
    assert add_host(plan, "f", "a", {}).path("f", "d").each_there == (("f-a", "a-c", "c-d"),)
    now = renumber_plan(diamond(), plan)
    assert difference(plan, now).refused == ("host a: routes: hosts get their routes as they boot",)
    assert renumber_plan(plan, plan) == plan


def test_a_stored_plan_with_other_routes_is_refused() -> None:
    document = diamond(a="d: c").model_dump_json()
    for other in (document.replace('"via":"c"', '"via":"e"'), document.replace('"to":"d"', '"to":"x"')):
        assert other != document
        with pytest.raises(ValueError, match=r"host a: routes.[dx]: "):
            Plan.model_validate_json(other)
    ring = (
        diamond(a="d: b")
        .model_dump_json()
        .replace('"name":"b",', '"name":"b","own_routes":[{"to":"d","via":"a","link":"a-b"}],', 1)
    )
    with pytest.raises(ValueError, match="in a ring"):
        Plan.model_validate_json(ring)


def test_without_routes_nothing_of_them_is_stored() -> None:
    assert "own_routes" not in diamond().model_dump_json()
    assert all(not path.ways_there for path in diamond().paths)


def test_settings_of_links_change_figures_and_no_way() -> None:
    plan = diamond(a="d: c")
    slower = tuple(link if link.name != "a-c" else link.model_copy(update={"rtt_ms": 40.0}) for link in plan.links)
    path = plan.set_to(plan.hosts, plan.switches, slower).path("a", "d")
    assert path.each_there == (("a-c", "c-d"),)
    assert path.rtt_ms == 20 + 2 + 4


def test_plan_and_other_formats_show_them(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text(text(a='d: c, "10.9.0.0/16": b'))
    shown = CliRunner().invoke(app, ["plan", str(file)]).stdout
    assert "a has routes of its own: d by c, 10.9.0.0/16 by b\n" in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("a – d"))
    assert row.split("\t")[1:4] == ["2", "by a-c, c-d, back by b-d, a-b", "9.00 ms"]
    assert any(line.startswith("routes of a") for line in network_of(diamond(a="d: c")).lost)

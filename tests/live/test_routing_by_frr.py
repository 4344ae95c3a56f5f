"""Hosts of FRR and of BIRD in one lab find the plan's routes, and others when a link loses its carrier."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.errors import HostFailed
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab, routes
from minigts.lab.outages import Outage
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched("tools/minigts/dataplane/*r*.py", "tools/minigts/topology/routing_engines.py"),
]
LIMIT_S = 60.0
RING = """name: ring
routing: {{protocol: {protocol}, engine: frr}}
ipv6: true
{more}
hosts: {{a: , b: {{routing: {{engine: {of_b}}}}}, c: , d: }}
defaults: {{link: {{rtt: 10ms, rate: 50mbit}}}}
links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [c, d]}}, {{ends: [d, a]}}]
"""
KEPT = re.compile(r"OSPF of FRR has not converged: a route to [0-9a-f:]+::/64, which is not planned")
NEIGHBOURS = {"ospf": "show ip ospf neighbor", "bgp": "show bgp ipv4 unicast summary", "isis": "show isis neighbor"}
KINDS = [
    ("ospf", "bird", ""),
    pytest.param(("bgp", "bird", "ecmp: true"), marks=pytest.mark.nightly),
    pytest.param(("ospf", "bird", "bfd: 100ms\necmp: true"), marks=pytest.mark.nightly),
    pytest.param(("bgp", "frr", "bfd: 100ms"), marks=pytest.mark.nightly),
    pytest.param(("isis", "frr", "bfd: 100ms"), marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2][:4]}")
def ring(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    protocol, of_b, more = request.param
    plan = parse(RING.format(protocol=protocol, of_b=of_b, more=more), "ring.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


def said(lab: Lab, host: str, *argv: str) -> str:
    return user_text(lab.provider.run(host, [*argv], timeout_s=LIMIT_S).stdout)


def hops(lab: Lab, source: str, address: str) -> int:
    shown = said(lab, source, "ping", "-n", "-c", "1", "-W", "2", address)
    return 64 - int(shown.partition("ttl=")[2].split()[0]) + 1


def test_routes_are_the_plans_and_vtysh_shows_the_neighbours(ring: Lab) -> None:
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)
    shown = said(ring, "a", "vtysh", "-c", NEIGHBOURS[ring.plan.routing])
    assert shown.count("eth1") + shown.count("eth2") + shown.count("10.20.") >= 2, shown


def test_the_certificate_names_the_program_whose_route_differs(ring: Lab) -> None:
    added = ("table", "20", "10.99.0.0/16", "dev", "eth2")
    said(ring, "a", "ip", "route", "add", *added)
    certificate = measure.certify(ring, quiet)
    said(ring, "a", "ip", "route", "del", *added)
    (row,) = (row for row in certificate.rows if row.quantity == "settings" and row.subject == "a")
    assert row.ok is False
    assert f"{ring.plan.protocol_title} of FRR: a route to 10.99.0.0/16, which is not planned" in row.note


def test_when_a_carrier_is_lost_the_other_way_is_found_and_then_the_first_again(ring: Lab) -> None:
    beside = ring.plan.ipv6_of("b")
    assert beside is not None
    addresses = (ring.plan.host("b").address, beside.address)
    assert [hops(ring, "a", address) for address in addresses] == [1, 1]
    labs.set_links_up(ring, "a", "b", up=False, how=Outage())
    try:
        routes.wait(ring, ring.read_record(), quiet)
        assert [hops(ring, "a", address) for address in addresses] == [3, 3]
    except HostFailed as error:
        if KEPT.search(str(error)):
            pytest.xfail("ospf6d of FRR 10.3 keeps a route that nobody announces: docs/routing-protocols.md")
        raise
    finally:
        labs.set_links_up(ring, "a", "b", up=True)
    routes.wait(ring, ring.read_record(), quiet)
    assert [hops(ring, "a", address) for address in addresses] == [1, 1]


def test_a_host_that_was_started_again_has_its_routes(ring: Lab) -> None:
    labs.restart(ring, "c")
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)

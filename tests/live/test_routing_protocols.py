"""Hosts that find their routes by OSPF or BGP: those of the plan, others behind a cut, and then the first again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab, routes
from minigts.topology.read.load import parse

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
RING = """name: ring
routing: {routing}
ipv6: true
hosts: {{a: , b: , c: }}
defaults: {{link: {{rtt: 10ms, rate: 50mbit}}}}
links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [c, a]}}]
"""


@pytest.fixture(scope="module", params=["ospf", pytest.param("bgp", marks=pytest.mark.nightly)])
def ring(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    plan = parse(RING.format(routing=request.param), "ring.yaml", time="virtual")
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(plan, "uml", None, quiet)
    yield made
    take_down(made)


def hops(lab: Lab, source: str, address: str) -> int:
    shown = user_text(lab.provider.run(source, ["ping", "-n", "-c", "1", "-W", "2", address], timeout_s=LIMIT_S).stdout)
    return 64 - int(shown.partition("ttl=")[2].split()[0]) + 1


def test_routes_are_the_plans_and_the_certificate_reads_them_back(ring: Lab) -> None:
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)
    ring.provider.run(
        "a", ["ip", "route", "add", "table", "20", ring.plan.host("b").address, "dev", "eth2"], timeout_s=LIMIT_S
    )
    certificate = measure.certify(ring, quiet)
    ring.provider.run(
        "a", ["ip", "route", "del", "table", "20", ring.plan.host("b").address, "dev", "eth2"], timeout_s=LIMIT_S
    )
    (row,) = (row for row in certificate.rows if row.quantity == "settings" and row.subject == "a")
    assert row.ok is False
    assert "goes by eth2, should go by eth1" in row.note


def test_behind_a_cut_the_other_way_is_found_and_then_the_first_again(ring: Lab) -> None:
    beside = ring.plan.ipv6_of("b")
    assert beside is not None
    addresses = (ring.plan.host("b").address, beside.address)
    assert [hops(ring, "a", address) for address in addresses] == [1, 1]
    labs.set_links_up(ring, "a", "b", up=False)
    routes.wait(ring, ring.read_record(), quiet)
    assert [hops(ring, "a", address) for address in addresses] == [2, 2]
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)
    labs.set_links_up(ring, "a", "b", up=True)
    routes.wait(ring, ring.read_record(), quiet)
    assert [hops(ring, "a", address) for address in addresses] == [1, 1]


@pytest.mark.nightly
def test_a_host_that_was_started_again_has_its_routes(ring: Lab) -> None:
    labs.restart(ring, "c")
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)


@pytest.mark.nightly
def test_a_link_that_loses_all_in_one_direction_is_no_way_for_a_protocol_either(ring: Lab) -> None:
    labs.update_settings(ring, "a-b", {"loss_percent": 100.0}, "a")
    routes.wait(ring, ring.read_record(), quiet)
    assert hops(ring, "a", ring.plan.host("b").address) == 2
    assert all(routes.differences(ring, host, ring.read_record()) == [] for host in ring.plan.hosts)
    labs.update_settings(ring, "a-b", {"loss_percent": None}, "a")
    routes.wait(ring, ring.read_record(), quiet)
    assert hops(ring, "a", ring.plan.host("b").address) == 1

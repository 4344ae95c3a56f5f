"""Hosts that are autonomous systems, by BIRD and by FRR, have the plan's routes, also when a link is cut; an address
that another one announces is found by the routes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.foreign import user_text
from minigts.lab import Lab, routes
from minigts.lab.outages import Outage
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched("tools/minigts/dataplane/*r*.py", "tools/minigts/topology/routes/*free.py"),
]
SYSTEMS = """name: systems
routing: bgp
hosts: {t1: , t2: , m1: {routing: {engine: frr}}, m2: , shop: {routing: {engine: frr}}, b: {asn: 174}, thief: }
defaults: {link: {rtt: 10ms}}
links:
  - {ends: [t1, t2], relationship: peer}
  - {ends: [t1, m1], relationship: customer}
  - {ends: [t2, m2], relationship: customer}
  - {ends: [m1, m2], relationship: peer}
  - {ends: [m1, shop], relationship: customer}
  - {ends: [b, m2], relationship: provider}
  - {ends: [b, t1], relationship: provider}
  - {ends: [t2, thief], relationship: customer}
"""


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(parse(SYSTEMS, "systems.yaml", time="virtual"), "uml", None, quiet)
    yield made
    take_down(made)


def differences(lab: Lab) -> dict[str, list[str]]:
    record = lab.read_record()
    found = {host.name: routes.differences(lab, host, record) for host in lab.plan.hosts}
    return {name: each for name, each in found.items() if each}


def hops(lab: Lab, source: str, target: str) -> int:
    argv = ["ping", "-n", "-c", "1", "-W", "2", lab.plan.own_address(target)]
    shown = user_text(lab.provider.run(source, argv, timeout_s=60.0).stdout)
    return 64 - int(shown.partition("ttl=")[2].split()[0]) + 1


def test_routes_are_the_plans_and_the_way_back_may_be_another(systems: Lab) -> None:
    assert differences(systems) == {}
    path = systems.plan.path("m1", "b")
    assert (path.each_there, path.each_back) == ((("m1-m2", "b-m2"),), (("b-t1", "t1-m1"),))
    assert hops(systems, "m1", "b") == 2


def test_when_a_link_is_cut_there_are_the_routes_without_it(systems: Lab) -> None:
    labs.set_links_up(systems, "m1", "m2", up=False, how=Outage())
    routes.wait(systems, systems.read_record(), quiet)
    assert hops(systems, "m1", "m2") == 3, "over both at the top"
    labs.set_links_up(systems, "m1", "m2", up=True)
    routes.wait(systems, systems.read_record(), quiet)
    assert hops(systems, "m1", "m2") == 1


def test_an_address_of_another_is_found_by_those_that_believe_it(systems: Lab) -> None:
    folder = "/run/minigts/underlay/thief"
    address = systems.plan.host("shop").address
    line = f"protocol static hijack {{ ipv4; route {address}/32 blackhole; }}"
    script = f"echo '{line}' >>{folder}/bird.conf; birdc -s {folder}/bird.ctl configure; sleep 5"
    systems.provider.run("thief", ["sh", "-c", script], timeout_s=60.0)
    found = differences(systems)
    assert f"BGP of BIRD: the route to {address} goes by eth3, should go by eth1" in found["t2"]
    assert not {"t1", "m1", "m2", "b"} & found.keys()

"""Few routes that lead as many do: each destination goes where it went, over any network of ways."""

from __future__ import annotations

import random
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

import pytest

from minigts.topology.plan.addressing import AnyRoute
from minigts.topology.plan.elements import Route
from minigts.topology.routes.aggregate import few_routes
from minigts.topology.routes.ipv6 import Ipv6Route

OWN = "10.255.9.9"


def route(to: str, via: str) -> Route:
    return Route(to=to, via=via, source=OWN)


def longest(routes: Iterable[AnyRoute], address: str) -> AnyRoute | None:
    """The route that Linux takes for an address: the one of the longest prefix."""
    found = [route for route in routes if ip_address(address) in ip_network(route.to)]
    return max(found, key=lambda route: ip_network(route.to).prefixlen, default=None)


@pytest.mark.parametrize("seed", range(60))
def test_each_destination_goes_by_the_same_neighbour(seed: int) -> None:
    draw = random.Random(seed)
    vias = [f"10.20.{number}.2" for number in range(draw.randint(1, 4))]
    own = [f"10.20.{number}.0/24" for number in range(len(vias))]
    hosts = [f"10.255.{number // 256}.{number % 256}/32" for number in draw.sample(range(600), draw.randint(2, 80))]
    segments = [f"10.{20 + number // 256}.{number % 256}.0/24" for number in draw.sample(range(5, 600), 30)]
    routes = [route(to, draw.choice(vias) if draw.random() < 0.3 else vias[0]) for to in (*hosts, *segments)]

    few = few_routes(routes, own)

    assert not {each.to for each in few} & {*own}
    assert len(few) <= len(routes) * 8
    for each in routes:
        for place in (0, -1):
            found = longest(few, str(ip_network(each.to)[place]))
            assert found is not None and (found.via, found.source) == (each.via, OWN), each


def test_a_host_with_one_neighbour_has_one_route() -> None:
    routes = [route(f"10.255.{number // 256}.{number % 256}/32", "10.20.0.1") for number in range(1000)]

    assert [each.to for each in few_routes(routes, ["10.20.0.0/24"])] == ["10.255.0.0/22"]


def test_the_middle_of_a_row_has_a_few() -> None:
    """Numbers go up along the row."""
    routes = [route(f"10.255.0.{number}/32", "10.20.0.1" if number < 100 else "10.20.1.2") for number in range(1, 255)]

    assert len(few_routes(routes, ["10.20.0.0/24", "10.20.1.0/24"])) <= 12


def test_several_ways_stay_several() -> None:
    both = ("10.20.1.2",)
    routes = [
        Route(to=f"10.255.0.{number}/32", via="10.20.0.2", source=OWN, also=both if number % 2 else ())
        for number in range(1, 9)
    ]

    for each in routes:
        found = longest(few_routes(routes, []), each.to.partition("/")[0])
        assert found is not None and found.also == each.also


def test_a_network_of_the_host_s_own_gets_no_route() -> None:
    """The ways on both of its sides are alike, and the range between them is its own."""
    routes = [
        route("10.20.0.0/24", "10.30.0.2"),
        route("10.20.2.0/24", "10.30.0.2"),
        route("10.255.0.1/32", "10.20.1.2"),
    ]

    assert "10.20.1.0/24" not in {each.to for each in few_routes(routes, ["10.20.1.0/24"])}


def test_ipv6_goes_alike() -> None:
    routes = [Ipv6Route(to=f"fd00::{number:x}/128", via="fd01::1", source="fd00::ffff") for number in range(1, 100)]

    (only,) = few_routes(routes, ["fd01::/64"])
    assert (only.to, only.via) == ("fd00::/121", "fd01::1")


def test_one_route_stays_as_it_is() -> None:
    routes = [route("10.255.0.1/32", "10.20.0.1")]

    assert few_routes(routes, []) == tuple(routes)

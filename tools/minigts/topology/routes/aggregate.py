"""Few routes that send packets as many do: by prefixes of several destinations. Pure.

All destinations of a host that lie side by side, and go by the same neighbours, have one range of addresses. The way of
the most ranges is a route to the smallest network around all destinations; each other range has the fewest prefixes
that make it up. So the longest prefix that fits any destination is of its own range. Only an address that is nobody's
goes another way than before: to a neighbour, where there was no route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network
from itertools import groupby
from typing import NamedTuple

from minigts.topology.frames import Family
from minigts.topology.plan.addressing import Addressing, AnyRoute
from minigts.topology.plan.elements import Host, Route
from minigts.topology.routes.paths import Underlay

IPV4_BITS = 32
LEAST = 2
"""So many routes are worth being put together."""


class _Range(NamedTuple):
    """The first and the last address of a network, as numbers, and an address's length."""

    low: int
    high: int
    bits: int


def routes_of_light_hosts(
    hosts: Sequence[Host], addressings: Sequence[Addressing], underlay: Underlay
) -> dict[tuple[str, Family], tuple[AnyRoute, ...]]:
    """The routes that are set on each light host, by its name and the version of IP.

    For a host whose only link leads to one neighbour they follow from the outermost of its destinations, and neither
    best ways nor a route to each destination are worked out: of a thousand hosts nearly all may be such.
    """

    @cache
    def outermost(addressing: Addressing) -> tuple[str, ...]:
        """The stored networks with the first and the last address."""
        anybody = hosts[0].address
        found = [
            (_range(route.to), to)
            for to in underlay.usual_destinations
            for route in addressing.routes([Route(to=to, via=anybody, source=anybody)])
        ]
        return min(found, key=lambda each: each[0].low)[1], max(found, key=lambda each: each[0].high)[1]

    routes: dict[tuple[str, Family], tuple[AnyRoute, ...]] = {}
    for host in (each for each in hosts if each.light):
        via = underlay.only_neighbour(host.name)
        all_routes = underlay.routes_of(host.name) if via is None else ()
        for addressing in addressings:
            if via is not None:
                all_routes = tuple(Route(to=to, via=via, source=host.address) for to in outermost(addressing))
            own = {str(ip_network(addressing.segment_address(end), strict=False)) for end in host.on_segments}
            routes[host.name, addressing.family] = few_routes(addressing.routes(all_routes), sorted(own))
    return routes


def few_routes(routes: Sequence[AnyRoute], own: Iterable[str]) -> tuple[AnyRoute, ...]:
    """Routes by which each destination of `routes`, of one version of IP, goes as before. `own` are the networks of the
    host's own segments, which it reaches without a route, and to which none may be set."""
    if len(routes) < LEAST:
        return tuple(routes)
    entries: list[tuple[_Range, AnyRoute | None]] = [(_range(route.to), route) for route in routes]
    around = _around([block for block, _ in entries])
    entries += [(_range(each), None) for each in own]
    entries.sort(key=lambda entry: entry[0])
    runs = [(way, [*run]) for way, run in groupby(entries, key=lambda entry: _way(entry[1]))]
    counts = Counter(way for way, _ in runs if way is not None)
    if around in {block for block, _ in entries}:
        return tuple(routes)
    usual, _ = counts.most_common(1)[0]
    found = [next(_led(run[0][1], around) for way, run in runs if way == usual)]
    for way, run in runs:
        if way not in (None, usual):
            (first, route), (last, _) = run[0], run[-1]
            found += [_led(route, block) for block in _blocks(first.low, last.high, first.bits)]
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _range(network: str) -> _Range:
    found = ip_network(network)
    return _Range(int(found.network_address), int(found.broadcast_address), found.max_prefixlen)


def _way(route: AnyRoute | None) -> tuple[str, ...] | None:
    return None if route is None else (route.via, *route.also)


def _led(route: AnyRoute | None, block: _Range) -> AnyRoute:
    """A route to that network which leads as this one."""
    assert route is not None, "only networks of the host's own have no route"
    length = block.bits - (block.high - block.low).bit_length()
    return route.model_copy(update={"to": f"{_address(block.low, block.bits)}/{length}"})


def _address(number: int, bits: int) -> IPv4Address | IPv6Address:
    return IPv4Address(number) if bits == IPV4_BITS else IPv6Address(number)


def _around(blocks: Sequence[_Range]) -> _Range:
    """The smallest network that has all of these in it."""
    low, high = min(block.low for block in blocks), max(block.high for block in blocks)
    rest = (1 << (low ^ high).bit_length()) - 1
    return _Range(low & ~rest, low | rest, blocks[0].bits)


def _blocks(low: int, high: int, bits: int) -> Iterator[_Range]:
    """The fewest networks that make up this range of addresses."""
    while low <= high:
        size = low & -low or 1 << bits
        while low + size - 1 > high:
            size >>= 1
        yield _Range(low, low + size - 1, bits)
        low += size

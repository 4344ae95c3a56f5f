"""The spanning tree of switches: who is root, what role each port has, and which links carry no frames of hosts.

IEEE 802.1D, in its editions of 1998 (STP, clause 8) and 2004 (RSTP, clause 17), which choose the same tree. The root is
the bridge with the lowest identifier; every other bridge reaches it by the port with the lowest cost of the way to the
root, then the lowest identifier of the bridge at the other end, then the lowest number of its port there, then the
lowest number of its own. A link on which neither end is so chosen is blocked at one end. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, TypeAlias

from minigts.topology.routes.graph import connected_components

Protocol: TypeAlias = Literal["stp", "rstp"]
Role: TypeAlias = Literal["root", "designated", "alternate"]
DEFAULT_PRIORITY = 32768
PRIORITY_STEP = 4096
HIGHEST_PRIORITY = 61440
"""Priorities are multiples of 4096 (802.1D-2004, 9.2.5); 32768 is recommended (table 17-2)."""
MOST_PORTS: Mapping[Protocol, int] = {"stp": 255, "rstp": 4095}
"""The most ports of a bridge: a port's number has 8 bits with STP and 12 with RSTP."""
HIGHEST_COST = 200_000_000
"""The highest cost of a port (802.1D-2004, table 17-3)."""
_COSTS: Mapping[Protocol, Sequence[tuple[float, int]]] = {
    "stp": ((10_000, 2), (1_000, 4), (100, 19), (16, 62), (10, 100)),
    "rstp": ((10_000, 2_000), (1_000, 20_000), (100, 200_000), (10, 2_000_000)),
}
_SLOWEST: Mapping[Protocol, int] = {"stp": 250, "rstp": 20_000_000}


_Offer: TypeAlias = tuple[int, tuple[int, str], int, int]
"""The cost of a way to the root, the identifier of the bridge at the other end, its port's number, one's own."""


@dataclass(frozen=True)
class Bridge:
    """A switch with a spanning tree."""

    name: str
    protocol: Protocol
    priority: int
    mac: str
    """The lowest of its ports' MAC addresses, in lower case."""

    @property
    def identifier(self) -> tuple[int, str]:
        """The lowest one is the root's. MAC addresses of one notation sort as numbers."""
        return self.priority, self.mac


@dataclass(frozen=True)
class BridgeWire:
    """A link between two bridges, by its index. `numbers` are those of its ports, from 1; `cost` is that of either
    port."""

    link: int
    ends: tuple[str, str]
    numbers: tuple[int, int]
    cost: int


@dataclass(frozen=True)
class BridgeTree:
    """What the bridges have agreed on when no timer runs any more."""

    roots: Mapping[str, str]
    """By bridge, the root of its tree: bridges that no wire joins have trees of their own."""
    roles: Mapping[tuple[int, str], Role]
    """By link and bridge."""

    @property
    def blocked(self) -> frozenset[int]:
        """The links that carry no frames of hosts, since one end does not forward."""
        return frozenset(link for (link, _), role in self.roles.items() if role == "alternate")


def path_cost(protocol: Protocol, rate_mbit: float | None) -> int:
    """What a port of that rate costs by the tables of the standard, as Open vSwitch has them (ovs-vswitchd.conf.db(5),
    `stp-path-cost`; lib/stp.c and lib/rstp.c): 802.1D-1998, table 8-5, for STP, and 802.1D-2004, table 17-3, for RSTP.

    A rate between two of the table costs as much as the lower one. A port without a rate costs what one of 10 Gbit/s
    does, which is also what Open vSwitch takes a port for that does not know its speed.
    """
    if rate_mbit is None:
        return _COSTS[protocol][0][1]
    return next((cost for least_mbit, cost in _COSTS[protocol] if rate_mbit >= least_mbit), _SLOWEST[protocol])


def tree_of(bridges: Collection[Bridge], wires: Sequence[BridgeWire]) -> BridgeTree:
    """The tree of each group of bridges that wires join. Every wire ends on two of the bridges."""
    named = {bridge.name: bridge for bridge in bridges}
    roots: dict[str, str] = {}
    for part in connected_components(named, (wire.ends for wire in wires)):
        root = min(part, key=lambda name: named[name].identifier)
        roots |= dict.fromkeys(part, root)
    costs = _costs_to_roots({*roots.values()}, wires)
    found: dict[tuple[int, str], Role] = {}
    offers: dict[str, list[tuple[_Offer, int]]] = {}
    for wire in wires:
        for end in (0, 1):
            offers.setdefault(wire.ends[end], []).append((_offer(named, costs, wire, end), wire.link))
    for name, its in offers.items():
        if roots[name] != name:
            found[min(its)[1], name] = "root"
    for wire in wires:
        first, second = (
            (costs[end], named[end].identifier, number) for end, number in zip(wire.ends, wire.numbers, strict=True)
        )
        designated, other = wire.ends if first < second else wire.ends[::-1]
        found[wire.link, designated] = "designated"
        found.setdefault((wire.link, other), "alternate")
    return BridgeTree(roots, found)


def _costs_to_roots(roots: Collection[str], wires: Sequence[BridgeWire]) -> dict[str, int]:
    """By bridge, the lowest sum of the costs of the ports by which frames of the root arrive (Dijkstra)."""
    beside: dict[str, list[tuple[str, int]]] = {}
    for wire in wires:
        for here, there in (wire.ends, wire.ends[::-1]):
            beside.setdefault(here, []).append((there, wire.cost))
    costs: dict[str, int] = {}
    waiting = [(0, root) for root in roots]
    while waiting:
        cost, name = heappop(waiting)
        if name not in costs:
            costs[name] = cost
            for other, further in beside.get(name, ()):
                heappush(waiting, (cost + further, other))
    return costs


def _offer(named: Mapping[str, Bridge], costs: Mapping[str, int], wire: BridgeWire, end: int) -> _Offer:
    """What the bridge at one end of a wire is offered over it: the priority vector of 802.1D-2004, 17.5, without the
    root, which is the same for all."""
    sender = wire.ends[1 - end]
    return costs[sender] + wire.cost, named[sender].identifier, wire.numbers[1 - end], wire.numbers[end]


def ring_links(ends: Mapping[int, tuple[str, str]]) -> list[int]:
    """The links, given by their ends, that lie on a ring: without one of them its ends would still be joined."""
    before, depth = _forest(ends)
    found: set[int] = set()
    above: dict[str, str] = {}

    def highest(name: str) -> str:
        """The end of the links above a node that are known to lie on a ring."""
        while name in above:
            name = above[name]
        return name

    for link in ends.keys() - {link for _, link in before.values()}:
        found.add(link)
        here, there = map(highest, ends[link])
        while here != there:
            lower, other = (here, there) if depth[here] >= depth[there] else (there, here)
            above[lower], upwards = before[lower]
            found.add(upwards)
            here, there = highest(lower), other
    return [link for link in ends if link in found]


def _forest(ends: Mapping[int, tuple[str, str]]) -> tuple[dict[str, tuple[str, int]], dict[str, int]]:
    """By node the one before it and the link from there, but for the roots; and how far from its root each node is."""
    beside: dict[str, list[tuple[str, int]]] = {}
    for link, (first, second) in ends.items():
        beside.setdefault(first, []).append((second, link))
        beside.setdefault(second, []).append((first, link))
    before: dict[str, tuple[str, int]] = {}
    depth: dict[str, int] = {}
    for root in beside:
        waiting = [] if root in depth else [root]
        depth.setdefault(root, 0)
        for here in waiting:
            for there, link in beside[here]:
                if there not in depth:
                    depth[there], before[there] = depth[here] + 1, (here, link)
                    waiting.append(there)
    return before, depth

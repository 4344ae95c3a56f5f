"""What switches do with the links between them: the spanning tree of those that have one, and the rings in which the
user's controller decides. Pure; of a plan's switches and links.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minigts.topology.plan.elements import Link, Switch
from minigts.topology.routes.addresses import BUILTIN_ADDRESS
from minigts.topology.routes.graph import connected_components
from minigts.topology.routes.spanning_tree import DEFAULT_PRIORITY, Bridge, BridgeTree, BridgeWire, ring_links, tree_of


def tree(switches: Sequence[Switch], links: Sequence[Link], without: Collection[str] = ()) -> BridgeTree:
    """The spanning tree over the links other than `without`, by name."""
    trees = {each.name: each for each in switches if each.spanning_tree is not None}
    bridges = [
        Bridge(each.name, each.spanning_tree.protocol, each.spanning_tree.priority, each.mac)
        for each in trees.values()
        if each.spanning_tree is not None
    ]
    numbers = {
        (port.link, each.name): number for each in trees.values() for number, port in enumerate(each.ports, start=1)
    }
    wires = [
        BridgeWire(link.index, link.ends, (numbers[link.name, first], numbers[link.name, second]), link.tree_cost or 1)
        for link in links
        for first, second in [link.ends]
        if first in trees and second in trees and link.name not in without
    ]
    return tree_of(bridges, wires)


def blocked_links(switches: Sequence[Switch], links: Sequence[Link], without: Collection[str] = ()) -> frozenset[str]:
    """The links that carry no frames of hosts, by the spanning tree over the links other than `without`."""
    if all(each.spanning_tree is None for each in switches):
        return frozenset()
    off = tree(switches, links, without).blocked
    return frozenset(link.name for link in links if link.index in off)


def told_switches(switches: Sequence[Switch], links: Sequence[Link]) -> frozenset[str]:
    """The switches of rings in which the user's controller decides where frames go."""
    told = {each.name for each in switches if each.controller is not None and not _is_builtin(each.controller)}
    inner = {link.index: link.ends for link in links if {*link.ends} <= told}
    return frozenset(name for index in ring_links(inner) for name in inner[index])


def unflooded_links(switches: Sequence[Switch], links: Sequence[Link]) -> frozenset[str]:
    """The links of rings that a controller decides on over which nothing is flooded until the controller says
    otherwise: those off a tree of the fewest links to the switch with the lowest MAC address."""
    told = told_switches(switches, links)
    around = {each.name: each for each in switches if each.name in told}
    numbers = {(port.link, name): number for name, each in around.items() for number, port in enumerate(each.ports, 1)}
    wires = [
        BridgeWire(link.index, link.ends, (numbers[link.name, first], numbers[link.name, second]), 1)
        for link in links
        for first, second in [link.ends]
        if first in around and second in around
    ]
    off = tree_of([Bridge(each.name, "rstp", DEFAULT_PRIORITY, each.mac) for each in around.values()], wires).blocked
    return frozenset(link.name for link in links if link.index in off)


def told_links(switches: Sequence[Switch], links: Sequence[Link]) -> frozenset[str]:
    """The links over which frames go, or do not go, as the controller of a ring decides: all those of its switches, and
    of the switches joined to these."""
    around = told_switches(switches, links)
    if not around:
        return frozenset()
    names = [each.name for each in switches]
    joined = connected_components(names, (link.ends for link in links if {*link.ends} <= {*names}))
    within = {name for part in joined if around.intersection(part) for name in part}
    return frozenset(link.name for link in links if within.intersection(link.ends))


def _is_builtin(controller: str) -> bool:
    return controller.startswith(f"{BUILTIN_ADDRESS}:")

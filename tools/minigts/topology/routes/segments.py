"""Which links are one segment, and what must hold of segments with switches.

Links that meet in a switch, in one VLAN, share a subnet. Where switches are there are no rings, one way in for each
host, one subnet and MTU, VLANs that hosts are in, and a controller in reach. Pure; by positions in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TypeAlias

from minigts.language.problems import Finding, list_names, path_of, quote
from minigts.topology.link_settings import Shaping
from minigts.topology.read.declared import Draft, DraftLink, DraftSwitch
from minigts.topology.routes.addresses import mac
from minigts.topology.routes.graph import connected_components
from minigts.topology.routes.spanning_tree import MOST_PORTS, Bridge, BridgeWire, path_cost, ring_links, tree_of

Vlans: TypeAlias = tuple[int | None, ...]
"""The numbers of the VLANs that a link carries, or None alone without VLANs."""
NO_VLAN: Vlans = (None,)
_Node: TypeAlias = tuple[int | str, int | None]
"""A link by index or a switch by name, in a VLAN."""


@dataclass(frozen=True)
class Segment:
    """The links by index, and the machines with an address there: hosts in the order of the links, then switches."""

    links: tuple[int, ...]
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    vlan: int | None = None

    @property
    def members(self) -> tuple[str, ...]:
        return (*self.hosts, *self.switches)


def segments(
    ends: Sequence[tuple[str, str]], switches: Collection[str], carried: Sequence[Vlans] | None = None
) -> list[Segment]:
    """The segments of links with these ends and VLANs, in order of their first links, then of VLANs. Without `carried`
    no link has a VLAN.
    """
    of_link = [NO_VLAN] * len(ends) if carried is None else carried
    nodes: Iterable[_Node] = ((index, vlan) for index, vlans in enumerate(of_link) for vlan in vlans)
    met: Iterable[tuple[_Node, _Node]] = (
        ((index, vlan), (name, vlan))
        for index, (pair, vlans) in enumerate(zip(ends, of_link, strict=True))
        for vlan in vlans
        for name in pair
        if name in switches
    )
    found = []
    for part in connected_components(nodes, met):
        links = sorted(node for node, _ in part if isinstance(node, int))
        names = [name for index in links for name in ends[index]]
        hosts = tuple(name for name in names if name not in switches)
        within = tuple(dict.fromkeys(name for name in names if name in switches))
        found.append(Segment(tuple(links), hosts, within, next(vlan for _, vlan in part)))
    return sorted(found, key=lambda part: (part.links[0], part.vlan or 0))


BUILTIN = "builtin"
CONTROLLER_PORT = 6653
"""The port of OpenFlow controllers (IANA)."""


def segments_of(drafted: Draft) -> list[Segment]:
    """The segments of a file, in order."""
    return segments(_ends(drafted), _names(drafted), vlans_of_links(drafted))


def vlans_of_links(drafted: Draft) -> list[Vlans]:
    """The VLANs that each link carries. Between switches these are all of their hosts', unless the file has fewer."""
    vlans: list[Vlans] = [NO_VLAN] * len(drafted.links)
    for fabric in _fabrics(drafted):
        used = _used(drafted, fabric)
        for index in fabric.links if used else ():
            link = drafted.links[index]
            between = {*link.ends} <= {*fabric.switches}
            vlans[index] = (link.vlan,) if link.vlan is not None else link.vlans or (used if between else NO_VLAN)
    return vlans


def addresses_written(part: Segment, links: Sequence[DraftLink]) -> dict[str, str]:
    """The addresses that the file has for machines on the segment, by name. A trunk is on several, and has none."""
    return {name: each for index in part.links if not links[index].vlans for name, each in links[index].addresses}


def _ends(drafted: Draft) -> list[tuple[str, str]]:
    return [link.ends for link in drafted.links]


def _names(drafted: Draft) -> set[str]:
    return {switch.name for switch in drafted.switches}


def _fabrics(drafted: Draft) -> list[Segment]:
    """The segments that links and switches form, VLANs aside."""
    names = _names(drafted)
    return [part for part in segments(_ends(drafted), names) if part.switches] if names else []


def _used(drafted: Draft, fabric: Segment) -> tuple[int, ...]:
    """The VLANs that hosts of the fabric are in."""
    hosts = {*fabric.hosts}
    links = [drafted.links[index] for index in fabric.links if not hosts.isdisjoint(drafted.links[index].ends)]
    return tuple(sorted({vlan for link in links for vlan in (link.vlan, *(link.vlans or ())) if vlan is not None}))


def wrong_segments(drafted: Draft) -> Iterator[Finding]:
    """Everything wrong with the segments that have switches."""
    for link in drafted.links:
        if not {*link.ends} & _names(drafted) and (link.vlan, link.vlans) != (None, None) and drafted.all_hosts:
            key = "vlans" if link.vlan is None else "vlan"
            yield (
                (*link.where, key),
                "only links that end on a switch have VLANs, and this one joins two hosts; take it out",
            )
    fabrics = _fabrics(drafted)
    for fabric in fabrics:
        yield from _same_mtu(drafted, fabric)
        yield from _vlans(drafted, fabric)
        yield from _trees(drafted, fabric)
    parts = [part for part in segments_of(drafted) if part.switches]
    for part in parts:
        yield from _segment(drafted, part)
    for fabric in fabrics:
        yield from _rings(drafted, fabric, [part for part in parts if {*part.switches} <= {*fabric.switches}])
    for switch in drafted.switches:
        own = next((fabric for fabric in fabrics if switch.name in fabric.switches), None)
        if own is None and drafted.all_links:
            yield switch.where, f"no link ends on switch {switch.name!r}"
        yield from _controller(drafted, switch, own)


def _segment(drafted: Draft, part: Segment) -> Iterator[Finding]:
    yield from _same_subnet(drafted, part)
    its = "" if part.vlan is None else f" in VLAN {part.vlan}"
    for name in sorted({name for name in part.hosts if part.hosts.count(name) > 1}):
        again = [index for index in part.links if name in drafted.links[index].ends][1]
        hint = "a host has one link to a segment: the switches would carry its frames in a ring"
        yield drafted.links[again].where, f"host {name!r} is on this segment{its} already; {hint}"


def _rings(drafted: Draft, fabric: Segment, parts: Sequence[Segment]) -> Iterator[Finding]:
    """Rings of switches in which frames would circle. None is left where a spanning tree blocks a link of each, and one
    whose switches all have a controller of the user's is that controller's."""
    blocked = _blocked(drafted, fabric)
    for part in parts:
        inner = {link: ends for link, ends in _inner(drafted, part).items() if link not in blocked}
        left = [link for link in ring_links(inner) if not _told(drafted, inner[link])]
        for around in connected_components((), (inner[link] for link in left)):
            names = [name for name in part.switches if name in around]
            last = [link for link in left if inner[link][0] in around][-1]
            yield drafted.links[last].where, _ring_in_words(drafted, names, part.vlan)
        lost = [link for link in part.links if link in blocked]
        if lost and len(connected_components(part.switches, inner.values())) > 1:
            why = f"blocks this link, and without it VLAN {part.vlan} falls apart"
            remedy = "let another link between the switches carry that VLAN, too"
            yield drafted.links[lost[0]].where, f"the spanning tree, which is one for all VLANs, {why}: {remedy}"


def _ring_in_words(drafted: Draft, names: Sequence[str], vlan: int | None) -> str:
    its = "" if vlan is None else f" in VLAN {vlan}"
    treeless = [each.name for each in drafted.switches if each.name in names and each.spanning_tree is None]
    whom = "each of them" if len(names) == len(treeless) else list_names(treeless)
    ring = f"the links between {', '.join(names)} form a ring{its}, in which frames would circle"
    return f"{ring}; take one out, or give {whom} `spanning_tree: rstp`"


def _inner(drafted: Draft, part: Segment) -> dict[int, tuple[str, str]]:
    """The links of a segment between two of its switches, by index, with their ends."""
    ends = {index: drafted.links[index].ends for index in part.links}
    return {index: pair for index, pair in ends.items() if {*pair} <= {*part.switches} and pair[0] != pair[1]}


def _told(drafted: Draft, ends: tuple[str, str]) -> bool:
    """Whether both switches have a controller of the user's."""
    return all(each.controller not in (None, BUILTIN) for each in drafted.switches if each.name in ends)


def _blocked(drafted: Draft, fabric: Segment) -> frozenset[int]:
    """The links that the spanning trees of the fabric's switches block, by index."""
    trees = {each.name: each for each in drafted.switches if each.spanning_tree and each.name in fabric.switches}
    numbers, macs = _ports(drafted)
    bridges = [
        Bridge(each.name, each.spanning_tree, each.priority, min(macs[each.name]))
        for each in trees.values()
        if each.spanning_tree is not None
    ]
    wires = []
    for index in fabric.links:
        first, second = drafted.links[index].ends
        if first != second and first in trees and second in trees:
            cost = path_cost(trees[first].spanning_tree or "rstp", slower_mbit(*drafted.links[index].ways))
            wires.append(BridgeWire(index, (first, second), numbers[index], cost))
    return tree_of(bridges, wires).blocked


def _ports(drafted: Draft) -> tuple[dict[int, tuple[int, int]], dict[str, list[str]]]:
    """The numbers of the ports at both ends of each link, from 1, and the MAC addresses of each machine's ports."""
    macs: dict[str, list[str]] = {}
    numbers: dict[int, tuple[int, int]] = {}
    for index, link in enumerate(drafted.links):
        written = dict(link.macs)
        for end, name in enumerate(link.ends):
            macs.setdefault(name, []).append(written.get(name, mac(index, end)).lower())
        numbers[index] = len(macs[link.ends[0]]), len(macs[link.ends[1]])
    return numbers, macs


def slower_mbit(to: Shaping, back: Shaping) -> float | None:
    """The rate of a link's slower direction; None where neither has one."""
    return min((way.rate_mbit for way in (to, back) if way.rate_mbit is not None), default=None)


def _trees(drafted: Draft, fabric: Segment) -> Iterator[Finding]:
    """Switches that cannot take part in the spanning tree of those to which they are joined."""
    within = {each.name: each for each in drafted.switches if each.name in fabric.switches}
    for switch in within.values():
        where = (*switch.where, "spanning_tree")
        if switch.spanning_tree is None:
            continue
        if switch.controller is not None:
            yield where, "a controller decides by itself where frames go: take out the controller, or the spanning tree"
        ports = [name for index in fabric.links for name in drafted.links[index].ends].count(switch.name)
        if ports > (most := MOST_PORTS[switch.spanning_tree]):
            yield where, f"{ports} links end on {switch.name}; with {switch.spanning_tree} at most {most} can"
    for index in fabric.links:
        first, second = (within.get(name) for name in drafted.links[index].ends)
        kinds = {each.spanning_tree for each in (first, second) if each is not None and each.spanning_tree is not None}
        if first is not None and second is not None and len(kinds) > 1:
            has = f"{first.name} has {first.spanning_tree}, and {second.name}, to which this link joins it, has"
            yield drafted.links[index].where, f"{has} {second.spanning_tree}: give them the same spanning tree"


def _same_mtu(drafted: Draft, fabric: Segment) -> Iterator[Finding]:
    first = drafted.links[fabric.links[0]]
    for link in (drafted.links[index] for index in fabric.links[1:]):
        if link.mtu != first.mtu:
            there = f"the MTU {first.mtu} of {path_of(first.where)}"
            yield link.where, f"MTU {link.mtu} differs from {there}; a switch does not fragment"


def _same_subnet(drafted: Draft, part: Segment) -> Iterator[Finding]:
    """A segment's subnet may be given with any of its links that is in no other segment."""
    alone = [drafted.links[index] for index in part.links if not drafted.links[index].vlans]
    lead = next((link for link in alone if link.subnet), None)
    for link in alone:
        if lead is not None and link.subnet is not None and link.subnet != lead.subnet:
            there = f"{lead.subnet} of {path_of(lead.where)}"
            yield (*link.where, "subnet"), f"{link.subnet} differs from {there}, on the same segment"


def _vlans(drafted: Draft, fabric: Segment) -> Iterator[Finding]:
    used = _used(drafted, fabric)
    known = list_names([str(vlan) for vlan in used]) if used else "none"
    for link in (drafted.links[index] for index in fabric.links):
        between = {*link.ends} <= {*fabric.switches}
        given = (link.vlan, *(link.vlans or ()))
        if used and not between and given == (None,) and link.whole:
            words = f"which VLAN is this link in? Other links of {', '.join(fabric.switches)} are in {known}"
            yield link.where, f"{words}: write `vlan:`, or `vlans:` for a host that tags its frames"
        for vlan in given if between else ():
            if vlan is not None and vlan not in used:
                key = "vlans" if link.vlan is None else "vlan"
                yield (*link.where, key), f"no host of the switch is in VLAN {vlan}; hosts are in {known}"
        trunk = link.vlans or (between and link.vlan is None)
        if link.subnet is not None and used and trunk:
            yield (*link.where, "subnet"), "a trunk is on several segments: give the subnet with a link of one VLAN"
    for switch in drafted.switches if used else ():
        if switch.name in fabric.switches and switch.controller is not None:
            why = "a controller's flows ignore the VLANs of the switch's ports"
            yield (*switch.where, "controller"), f"{why}; take it out, or the VLANs"


def _controller(drafted: Draft, switch: DraftSwitch, part: Segment | None) -> Iterator[Finding]:
    where = (*switch.where, "controller")
    if switch.controller is None or switch.controller == BUILTIN:
        return
    name, port = host_and_port(switch.controller)
    if not 0 < port < 65536:
        yield where, f"port {port} is out of range: from 1 to 65535"
    if is_address(name):
        return
    if name[0].isdigit():
        yield where, f"{quote(name)} is not an IPv4 address"
    elif name == BUILTIN:
        yield where, f"the built-in controller has port {CONTROLLER_PORT}: write builtin alone"
    elif drafted.all_hosts and name not in {host.name for host in drafted.hosts}:
        yield where, f"no host {name!r} for a controller; write builtin, a host's name or an IPv4 address"
    elif drafted.all_links and name not in (part.hosts if part else ()):
        yield where, f"host {name!r} is not on the segment of {switch.name}, from which the switch reaches it"


def host_and_port(written: str) -> tuple[str, int]:
    """`h1:6633` as ("h1", 6633)."""
    name, _, port = written.partition(":")
    return name, int(port or CONTROLLER_PORT)


def is_address(name: str) -> bool:
    try:
        IPv4Address(name)
    except ValueError:
        return False
    return True

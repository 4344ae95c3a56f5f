"""Which links are one segment, and what must hold of segments with switches.

Links that meet in a switch, in one VLAN, share a subnet. Where switches are there are no rings, one way in for each
host, one subnet and MTU, VLANs that hosts are in, and a controller in reach. Pure; by positions in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TypeAlias

from minigts.language.problems import Finding, listed, path_of, shown
from minigts.topology.read.draft import Draft, DraftLink, DraftSwitch
from minigts.topology.routes.graph import connected

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
    for part in connected(nodes, met):
        links = sorted(node for node, _ in part if isinstance(node, int))
        names = [name for index in links for name in ends[index]]
        hosts = tuple(name for name in names if name not in switches)
        within = tuple(dict.fromkeys(name for name in names if name in switches))
        found.append(Segment(tuple(links), hosts, within, next(vlan for _, vlan in part)))
    return sorted(found, key=lambda part: (part.links[0], part.vlan or 0))


BUILTIN = "builtin"
BUILTIN_ADDRESS = "127.0.0.1"
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
    for part in segments_of(drafted):
        if part.switches:
            yield from _segment(drafted, part)
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
    links = [drafted.links[index] for index in part.links]
    inner = [link for link in links if {*link.ends} <= {*part.switches} and link.ends[0] != link.ends[1]]
    if len(inner) >= len(part.switches):
        names = ", ".join(part.switches)
        yield inner[-1].where, f"the links between {names} form a ring{its}, in which frames would circle; take one out"


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
    known = listed([str(vlan) for vlan in used]) if used else "none"
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
        yield where, f"{shown(name)} is not an IPv4 address"
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

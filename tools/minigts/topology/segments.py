"""The segments of a topology: links that meet in a switch, in one VLAN, share a subnet. Links are given by their index
in the file. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from minigts.topology.routing import connected

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

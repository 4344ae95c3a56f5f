"""Which links are one segment: those that meet in a switch, in one VLAN, share a subnet. Pure; by positions in the
file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from minigts.topology import connected

Vlans: TypeAlias = tuple[int | None, ...]
"""What a link carries: VLANs by number, or None alone where there are none."""
NO_VLAN: Vlans = (None,)


@dataclass(frozen=True)
class Segment:
    """Links by index, then who has an address there: hosts in the order of the links, switches behind them."""

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
    """The segments of links that are given by their ends and what each carries, in order of their first links, then of
    VLANs. Without `carried` no link has a VLAN: what is joined by cables.
    """
    nodes: list[tuple[int | str, int | None]] = [
        (index, vlan) for index in range(len(ends)) for vlan in (NO_VLAN if carried is None else carried[index])
    ]
    edges: list[tuple[tuple[int | str, int | None], tuple[int | str, int | None]]] = [
        ((index, vlan), (name, vlan))
        for index, vlan in nodes
        if isinstance(index, int)
        for name in ends[index]
        if name in switches
    ]
    found = []
    for part in connected.parts(nodes, edges):
        links = sorted(node for node, _ in part if isinstance(node, int))
        names = [name for index in links for name in ends[index]]
        hosts = tuple(name for name in names if name not in switches)
        within = tuple(dict.fromkeys(name for name in names if name in switches))
        found.append(Segment(tuple(links), hosts, within, next(vlan for _, vlan in part)))
    return sorted(found, key=lambda part: (part.links[0], part.vlan or 0))

"""Which links are one segment: those that meet in a switch share a subnet. Pure; by positions in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """Links by index, then who has an address there: hosts in the order of the links, switches behind them."""

    links: tuple[int, ...]
    hosts: tuple[str, ...]
    switches: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return (*self.hosts, *self.switches)


def segments(ends: Sequence[tuple[str, str]], switches: Collection[str]) -> list[Segment]:
    """The segments of links that are given by their ends, in order of their first links."""
    import networkx  # noqa: PLC0415 - commands on a lab that is up start without it

    graph: networkx.Graph[int | str] = networkx.Graph()
    for index, pair in enumerate(ends):
        graph.add_node(index)
        graph.add_edges_from((index, name) for name in pair if name in switches)
    grouped = ([node for node in part if isinstance(node, int)] for part in networkx.connected_components(graph))
    return [_segment(sorted(links), ends, switches) for links in sorted(grouped, key=min)]


def _segment(links: Sequence[int], ends: Sequence[tuple[str, str]], switches: Collection[str]) -> Segment:
    names = [name for index in links for name in ends[index]]
    within = tuple(dict.fromkeys(name for name in names if name in switches))
    return Segment(tuple(links), tuple(name for name in names if name not in switches), within)

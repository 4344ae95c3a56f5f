"""Shortest paths over a lab's segments, the same at every run and in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Edge:
    """A link between two nodes, or one VLAN of it: hosts by their position in the file, switches behind the last."""

    ends: tuple[int, int]
    rtt_ms: float


@dataclass(frozen=True)
class ShortestPath:
    """A path: the nodes on it from source to target, and the links between them, by index."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]
    cost: int
    """The lower, the better: the order by which `ways` chooses. The sum of the links' `costs`."""


def ways(nodes: int, edges: Sequence[Edge]) -> list[dict[int, ShortestPath]]:
    """For each node, host or switch, the way to every node that it is connected with, itself left out.

    The lowest RTT wins, then fewer hops, then the way whose latest segment in the file comes earliest. The last
    rule leaves no two ways equal, so that the way back is the way there, and all hosts on it agree.
    """
    import networkx  # noqa: PLC0415 - commands on a lab that is up start without it

    graph: networkx.Graph[int] = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    links: dict[tuple[int, int], int] = {}
    for index, cost in enumerate(costs(edges)):
        first, second = edges[index].ends
        if not graph.has_edge(first, second) or cost < graph.edges[first, second]["cost"]:
            graph.add_edge(first, second, cost=cost)
            links[first, second] = links[second, first] = index
    return [_from(graph, links, source) for source in range(nodes)]


def costs(edges: Sequence[Edge]) -> list[int]:
    """Of each link one exact number; the lower a way's sum of them, the better: RTT in ns, hops, set of segments."""
    return [_cost(edges, index) for index in range(len(edges))]


def neighbours(hosts: int, edges: Sequence[Edge]) -> dict[tuple[int, int], ShortestPath]:
    """The best way of each two hosts that share a segment, the lower index first: what they use unrouted.

    Nodes from `hosts` on are switches; no ring is among them.
    """
    best: dict[tuple[int, int], ShortestPath] = {}
    of_links = costs(edges)
    found = [way for source in range(hosts) for way in _unrouted(hosts, edges, of_links, source)]
    for way in sorted(found, key=lambda way: way.cost, reverse=True):
        best[way.nodes[0], way.nodes[-1]] = way
    return best


def _unrouted(hosts: int, edges: Sequence[Edge], of_links: Sequence[int], source: int) -> Iterator[ShortestPath]:
    """The ways from `source` to hosts behind it in the file that cross nothing but switches."""
    waiting = [ShortestPath((source,), (), 0)]
    while waiting:
        way = waiting.pop()
        here = way.nodes[-1]
        for index, edge in enumerate(edges):
            if here in edge.ends and index not in way.links:
                there = edge.ends[1 - edge.ends.index(here)]
                longer = ShortestPath((*way.nodes, there), (*way.links, index), way.cost + of_links[index])
                if there >= hosts:
                    waiting.append(longer)
                elif there > source:
                    yield longer


def _cost(edges: Sequence[Edge], index: int) -> int:
    # It compares like (RTT in ns, hops, set of segments): 8 bits hold the hops of 250 hosts.
    rtt_ns = round(edges[index].rtt_ms * 1_000_000)
    return (((rtt_ns << 8) + 1) << len(edges)) + (1 << index)


def _from(graph: networkx.Graph[int], links: Mapping[tuple[int, int], int], source: int) -> dict[int, ShortestPath]:
    import networkx  # noqa: PLC0415 - commands on a lab that is up start without it

    nearer, lengths = networkx.dijkstra_predecessor_and_distance(graph, source, weight="cost")
    found = {source: ShortestPath((source,), (), 0)}
    for target, cost in lengths.items():  # by distance: what lies before a node has been found before it
        if target != source:
            before = found[nearer[target][0]]
            link = links[before.nodes[-1], target]
            found[target] = ShortestPath((*before.nodes, target), (*before.links, link), int(cost))
    return {target: way for target, way in sorted(found.items()) if target != source}

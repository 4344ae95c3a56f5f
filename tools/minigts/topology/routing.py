"""Shortest paths over a lab's segments, the same at every run and in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Edge:
    """A link between two nodes: hosts by their position in the file, switches behind the last of them."""

    ends: tuple[int, int]
    rtt_ms: float


@dataclass(frozen=True)
class ShortestPath:
    """A path: the nodes on it from source to target, and the links between them, by index."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]


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


def preference(way: ShortestPath, of_links: Sequence[int]) -> int:
    """The lower, the better: the order by which `ways` chooses. `of_links` are the links' `costs`."""
    return sum(of_links[link] for link in way.links)


def neighbours(hosts: int, edges: Sequence[Edge]) -> dict[tuple[int, int], ShortestPath]:
    """The best way of each two hosts that share a segment, the lower index first: what they use unrouted.

    Nodes from `hosts` on are switches; no ring is among them.
    """
    best: dict[tuple[int, int], ShortestPath] = {}
    of_links = costs(edges)
    found = [way for source in range(hosts) for way in _unrouted(hosts, edges, source)]
    for way in sorted(found, key=lambda way: preference(way, of_links), reverse=True):
        best[way.nodes[0], way.nodes[-1]] = way
    return best


def _unrouted(hosts: int, edges: Sequence[Edge], source: int) -> Iterator[ShortestPath]:
    """The ways from `source` to hosts behind it in the file that cross nothing but switches."""
    waiting = [ShortestPath((source,), ())]
    while waiting:
        way = waiting.pop()
        here = way.nodes[-1]
        for index, edge in enumerate(edges):
            if here in edge.ends and index not in way.links:
                there = edge.ends[1 - edge.ends.index(here)]
                longer = ShortestPath((*way.nodes, there), (*way.links, index))
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

    paths = networkx.single_source_dijkstra_path(graph, source, weight="cost")
    return {target: _way(links, path) for target, path in sorted(paths.items()) if target != source}


def _way(links: Mapping[tuple[int, int], int], path: Sequence[int]) -> ShortestPath:
    return ShortestPath(tuple(path), tuple(links[step] for step in pairwise(path)))

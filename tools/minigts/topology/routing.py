"""Shortest paths over a lab's segments, the same at every run and in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx


@dataclass(frozen=True)
class Edge:
    """A segment between two hosts, which are given by their position in the file."""

    ends: tuple[int, int]
    rtt_ms: float


@dataclass(frozen=True)
class Way:
    """A path: the hosts on it from source to target, and the segments between them, by index."""

    hosts: tuple[int, ...]
    links: tuple[int, ...]


def ways(hosts: int, edges: Sequence[Edge]) -> list[dict[int, Way]]:
    """For each host the way to every host that it is connected with, itself left out.

    The lowest RTT wins, then fewer hops, then the way whose latest segment in the file comes earliest. The last
    rule leaves no two ways equal, so that the way back is the way there, and all hosts on it agree.
    """
    graph: networkx.Graph[int] = networkx.Graph()
    graph.add_nodes_from(range(hosts))
    for index in range(len(edges)):
        cost = _cost(edges, index)
        first, second = edges[index].ends
        if not graph.has_edge(first, second) or cost < graph.edges[first, second]["cost"]:
            graph.add_edge(first, second, cost=cost, link=index)
    return [_from(graph, source) for source in range(hosts)]


def preference(way: Way, edges: Sequence[Edge]) -> int:
    """The lower, the better: the order by which `ways` chooses."""
    return sum(_cost(edges, link) for link in way.links)


def neighbours(edges: Sequence[Edge]) -> dict[tuple[int, int], Way]:
    """The best segment of each two hosts that share one, the lower index first: what they use unrouted."""
    best: dict[tuple[int, int], Way] = {}
    for index in sorted(range(len(edges)), key=lambda index: _cost(edges, index), reverse=True):
        first, second = sorted(edges[index].ends)
        best[first, second] = Way((first, second), (index,))
    return best


def _cost(edges: Sequence[Edge], index: int) -> int:
    # One exact number that compares like (RTT in ns, hops, set of segments): 8 bits hold the hops of 250 hosts.
    rtt_ns = round(edges[index].rtt_ms * 1_000_000)
    return (((rtt_ns << 8) + 1) << len(edges)) + (1 << index)


def _from(graph: networkx.Graph[int], source: int) -> dict[int, Way]:
    paths = networkx.single_source_dijkstra_path(graph, source, weight="cost")
    return {target: _way(graph, path) for target, path in sorted(paths.items()) if target != source}


def _way(graph: networkx.Graph[int], path: Sequence[int]) -> Way:
    return Way(tuple(path), tuple(graph.edges[step]["link"] for step in pairwise(path)))

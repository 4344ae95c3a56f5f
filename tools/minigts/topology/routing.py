"""Shortest paths over a lab's segments, the same at every run and in both directions."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


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
    of_links = costs(edges)
    best: list[dict[int, int]] = [{} for _ in range(nodes)]
    for index, cost in enumerate(of_links):
        for here, there in (edges[index].ends, reversed(edges[index].ends)):
            if there not in best[here] or cost < of_links[best[here][there]]:
                best[here][there] = index
    return [_from(best, of_links, source) for source in range(nodes)]


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


def _from(best: Sequence[Mapping[int, int]], of_links: Sequence[int], source: int) -> dict[int, ShortestPath]:
    """Dijkstra's algorithm. `best` holds for each node its neighbours, and the best link to each."""
    found: dict[int, ShortestPath] = {}
    waiting = [(0, source, source, -1)]
    while waiting:
        cost, node, before, link = heapq.heappop(waiting)
        if node in found:
            continue
        way = found.get(before, ShortestPath((), (), 0))
        found[node] = ShortestPath((*way.nodes, node), (*way.links, link) if found else (), cost)
        for there, link in best[node].items():
            if there not in found:
                heapq.heappush(waiting, (cost + of_links[link], there, node, link))
    return {target: way for target, way in sorted(found.items()) if target != source}

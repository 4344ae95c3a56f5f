"""Shortest paths over a lab's segments, the same at every run and in both directions; and what a routing protocol of
the hosts takes each link to cost, the same for OSPF and BGP. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeVar

from minigts.topology.fields import MOST_HOSTS

N = TypeVar("N", bound=Hashable)
_HOP_BITS = MOST_HOSTS.bit_length()


@dataclass(frozen=True)
class Edge:
    """A link between two nodes, or one VLAN of it: hosts by their position in the file, switches behind the last."""

    ends: tuple[int, int]
    rtt_ms: float
    cost: int | None = None
    """The link's own cost, which then takes the place of round trip and hops."""


@dataclass(frozen=True)
class Step:
    """The last step of the best path to a node."""

    node: int
    cost: int
    before: int
    """The node before it; `link` is the index of the link between the two."""
    link: int


class Graph:
    """A graph of numbered nodes, with the cheapest link between each two that are joined."""

    def __init__(self, nodes: int, edges: Sequence[Edge], costs: Sequence[int]) -> None:
        self._beside: list[dict[int, tuple[int, int]]] = [{} for _ in range(nodes)]
        for index, (edge, cost) in enumerate(zip(edges, costs, strict=True)):
            first, second = edge.ends
            if second not in self._beside[first] or cost < self._beside[first][second][0]:
                self._beside[first][second] = self._beside[second][first] = cost, index

    def steps(self, source: int, passable: range | None = None) -> Iterator[Step]:
        """Yield the last step of the best path from `source` to each connected node, the nearest first (Dijkstra).

        Paths pass through `passable` nodes only; None allows any.
        """
        seen, waiting = {source: 0}, [(0, source, source, -1)]
        done: set[int] = set()
        while waiting:
            cost, node, before, link = heappop(waiting)
            if node in done:
                continue
            done.add(node)
            if node != source:
                yield Step(node, cost, before, link)
                if passable is not None and node not in passable:
                    continue
            for other, (further, index) in self._beside[node].items():
                if other not in done and (other not in seen or cost + further < seen[other]):
                    seen[other] = cost + further
                    heappush(waiting, (cost + further, other, node, index))


def costs(edges: Sequence[Edge]) -> list[int]:
    """The exact cost of each link: RTT in ns and hops, or its own cost; set of segments. The path with the lowest sum
    is the best.

    The lowest RTT wins, then fewer hops, or the lowest sum of the links' own costs; then the path whose latest segment
    in the file comes earliest. The last rule leaves no two paths equal, so that the path back is the path there, and
    all hosts on it agree.
    """
    return [_cost(edges, index) for index in range(len(edges))]


def _cost(edges: Sequence[Edge], index: int) -> int:
    edge = edges[index]
    return ((hop_cost(edge.rtt_ms) if edge.cost is None else edge.cost) << len(edges)) + (1 << index)


def hop_cost(rtt_ms: float) -> int:
    """The part of a link's cost by which paths may be equal: the lowest RTT is best, then the fewest hops."""
    return (round(rtt_ms * 1_000_000) << _HOP_BITS) + 1


def connected(nodes: Iterable[N], pairs: Iterable[tuple[N, N]]) -> list[list[N]]:
    """The connected components of the graph, each in order of its nodes, sorted by their first nodes."""
    beside: dict[N, list[N]] = {node: [] for node in nodes}
    for first, second in pairs:
        beside.setdefault(first, []).append(second)
        beside.setdefault(second, []).append(first)
    number: dict[N, int] = {}
    count = 0
    for node in beside:
        if node in number:
            continue
        waiting = [node]
        while waiting:
            if (here := waiting.pop()) not in number:
                number[here] = count
                waiting += beside[here]
        count += 1
    found: list[list[N]] = [[] for _ in range(count)]
    for node in beside:
        found[number[node]].append(node)
    return found


LONGEST, HOP, BY_NAME = 60000, 4096, 1024
"""The parts of a cost: the longest link's RTT, each hop, and the bound of the part from the link's name."""
ATTEMPTS = 32


def protocol_costs(nodes: int, edges: Sequence[Edge], names: Sequence[str]) -> list[int]:
    """The cost of each link, from 1 to 65535. Of several attempts the one with the fewest ties between best paths is
    taken; in a large lab of equal links some may be left, and the protocol may take either path.
    """
    best: list[int] = []
    fewest = -1
    for attempt in range(ATTEMPTS):
        found = _costs(edges, names, attempt)
        ties = _ties(nodes, edges, found)
        if fewest < 0 or ties < fewest:
            best, fewest = found, ties
        if not ties:
            break
    return best


def _costs(edges: Sequence[Edge], names: Sequence[str], attempt: int) -> list[int]:
    by_name = (zlib.crc32(f"{attempt}/{name}".encode()) % BY_NAME for name in names)
    return [own + cost for own, cost in zip(by_name, equal_costs([edge.rtt_ms for edge in edges]), strict=True)]


def equal_costs(rtts_ms: Sequence[float]) -> list[int]:
    """The cost of each link without the part from its name: links of the same RTT cost the same."""
    longest_ms = max(rtts_ms, default=0.0) or 1.0
    return [HOP + round(LONGEST * rtt_ms / longest_ms) for rtt_ms in rtts_ms]


def _ties(nodes: int, edges: Sequence[Edge], costs: Sequence[int]) -> int:
    """The number of hosts and segments to which some host has two best paths."""
    count = 0
    for distances in distances_between(nodes, edges, costs):
        reached: dict[int, int] = {}
        for edge, cost in zip(edges, costs, strict=True):
            first, second = edge.ends
            if first not in distances:
                continue
            reached[second] = reached.get(second, 0) + (distances[first] + cost == distances[second])
            reached[first] = reached.get(first, 0) + (distances[second] + cost == distances[first])
            count += distances[first] == distances[second]
        count += sum(ways > 1 for ways in reached.values())
    return count


def distances_between(nodes: int, edges: Sequence[Edge], costs: Sequence[int]) -> list[dict[int, int]]:
    """For each node, the cost of the best path to each node that it is connected with; 0 for itself."""
    graph = Graph(nodes, edges, costs)
    return [{source: 0} | {step.node: step.cost for step in graph.steps(source)} for source in range(nodes)]

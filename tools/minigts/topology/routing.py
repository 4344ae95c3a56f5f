"""Shortest paths over a lab's segments, the same at every run and in both directions."""

from __future__ import annotations

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
    """The exact cost of each link: RTT in ns, hops, set of segments. The path with the lowest sum is the best.

    The lowest RTT wins, then fewer hops, then the path whose latest segment in the file comes earliest. The last rule
    leaves no two paths equal, so that the path back is the path there, and all hosts on it agree.
    """
    return [_cost(edges, index) for index in range(len(edges))]


def _cost(edges: Sequence[Edge], index: int) -> int:
    rtt_ns = round(edges[index].rtt_ms * 1_000_000)
    return (((rtt_ns << _HOP_BITS) + 1) << len(edges)) + (1 << index)


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

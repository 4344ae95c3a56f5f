"""The best ways over a lab's links: the one that is the same at every run and in both directions, or all of them, for
`ecmp:` and costs of one direction. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

MOST_KEPT = 128
"""Of how many nodes a graph keeps the best ways: those of a lab's five thousand hosts would take 10 GB."""
MOST_WAYS = 64
"""The most ways between two hosts that are listed one by one."""
Costs = tuple[int, int]
"""What an edge costs from its first end to its second, and back."""


@dataclass(frozen=True)
class Ways:
    """The best ways from one node to all others, or from all others to it."""

    order: tuple[int, ...]
    """The connected nodes, the nearest first, without the node itself."""
    cost: Mapping[int, int]
    towards: Mapping[int, tuple[tuple[int, int], ...]]
    """By node, the next node on each of its best ways towards the one node, and the index of the edge to it, in the
    order of the edges."""

    def edges_to(self, node: int, start: int) -> list[tuple[int, ...]]:
        """Each best way from `start`, the one node, to `node`, by its edges; at most MOST_WAYS, sorted."""
        found: list[tuple[int, ...]] = []
        open_: list[tuple[int, tuple[int, ...]]] = [(node, ())]
        while open_ and len(found) < MOST_WAYS:
            here, passed = open_.pop()
            if here == start:
                found.append(passed)
                continue
            open_ += [(beside, (edge, *passed)) for beside, edge in reversed(self.towards[here])]
        return sorted(found)

    def edges_within(self, node: int) -> set[int]:
        """The edges of all best ways between `node` and the one node."""
        found: set[int] = set()
        seen, waiting = {node}, [node]
        while waiting:
            for beside, edge in self.towards.get(waiting.pop(), ()):
                found.add(edge)
                if beside not in seen:
                    seen.add(beside)
                    waiting.append(beside)
        return found


class WeightedGraph:
    """Numbered nodes and the edges between them. With `several` all ways of the lowest cost are best; without it the
    one whose latest edge comes earliest among them: so no two ways are equal, the way back is the way there where the
    costs are the same, and all hosts on it agree."""

    def __init__(self, nodes: int, edges: Sequence[tuple[int, int]], costs: Sequence[Costs], *, several: bool) -> None:
        self._beside: list[list[tuple[int, int, Costs]]] = [[] for _ in range(nodes)]
        for index, (pair, own) in enumerate(zip(edges, costs, strict=True)):
            to, back = own if several else ((each << len(edges)) + (1 << index) for each in own)
            self._beside[pair[0]].append((pair[1], index, (to, back)))
            self._beside[pair[1]].append((pair[0], index, (back, to)))
        self._kept = lru_cache(maxsize=MOST_KEPT)(self._ways)

    def edges_at(self, node: int) -> list[tuple[int, int]]:
        """By each edge of the node, the node at its other end, and the edge."""
        return [(other, edge) for other, edge, _ in self._beside[node]]

    def ways_from(self, node: int, passable: range | None = None) -> Ways:
        """The best ways from the node to all others (Dijkstra), which pass through `passable` nodes only; None allows
        any."""
        return self._kept(node, 0, passable)

    def ways_to(self, node: int) -> Ways:
        """The best ways from all others to the node."""
        return self._kept(node, 1)

    def _ways(self, start: int, direction: int, passable: range | None = None) -> Ways:
        cost, waiting, order = {start: 0}, [(0, start)], list[int]()
        towards: dict[int, list[tuple[int, int]]] = {}
        done: set[int] = set()
        while waiting:
            so_far, here = heappop(waiting)
            if here in done:
                continue
            done.add(here)
            order.append(here)
            if passable is not None and here not in passable and here != start:
                continue
            for other, edge, costs in self._beside[here]:
                further = so_far + costs[direction]
                if other in done or further > cost.get(other, further):
                    continue
                if further < cost.get(other, further + 1):
                    cost[other], towards[other] = further, []
                    heappush(waiting, (further, other))
                towards[other].append((here, edge))
        sorted_ = {node: tuple(sorted(each, key=lambda step: step[1])) for node, each in towards.items()}
        return Ways(tuple(order[1:]), cost, sorted_)


def first_edges(ways: Ways, start: int) -> dict[int, tuple[int, ...]]:
    """By node, the edges by which its best ways from `start` begin."""
    found: dict[int, tuple[int, ...]] = {}
    for node in ways.order:
        begun = (edge if beside == start else None for beside, edge in ways.towards[node])
        each = [
            (own,) if own is not None else found[beside]
            for own, (beside, _) in zip(begun, ways.towards[node], strict=True)
        ]
        found[node] = tuple(sorted({edge for several in each for edge in several}))
    return found

"""Which nodes of a lab are connected, and what a link costs: by its round trip, and in a routing protocol of the
hosts, the same for OSPF and BGP. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from minigts.topology.fields import MOST_HOSTS
from minigts.topology.routes.best_ways import WeightedGraph

N = TypeVar("N", bound=Hashable)
_HOP_BITS = MOST_HOSTS.bit_length()


@dataclass(frozen=True)
class Edge:
    """A link between two nodes: hosts by their position in the file, switches behind the last."""

    ends: tuple[int, int]
    rtt_ms: float


def hop_cost(rtt_ms: float) -> int:
    """The part of a link's cost by which paths may be equal: the lowest RTT is best, then the fewest hops."""
    return (round(rtt_ms * 1_000_000) << _HOP_BITS) + 1


def connected_components(nodes: Iterable[N], pairs: Iterable[tuple[N, N]]) -> list[list[N]]:
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
MOST_TRIED = 300
"""In larger networks the first attempt is taken: 32 of 1584 nodes took five minutes, and equal links leave ties."""


def protocol_costs(nodes: int, edges: Sequence[Edge], names: Sequence[str]) -> list[int]:
    """The cost of each link, from 1 to 65535. Of several attempts the one with the fewest ties between best paths is
    taken; in a large lab of equal links some may be left, and the protocol may take either path. In one of more
    than MOST_TRIED nodes the first is taken.
    """
    if nodes > MOST_TRIED:
        return _costs(edges, names, 0)
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
    network = WeightedGraph(nodes, [edge.ends for edge in edges], [(cost, cost) for cost in costs], several=True)
    return [dict(network.ways_from(source).cost) for source in range(nodes)]

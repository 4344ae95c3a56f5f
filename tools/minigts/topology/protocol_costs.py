"""What a routing protocol of the hosts takes each link to cost. Pure, and the same for OSPF and BGP.

OSPF has sixteen bits for it (RFC 2328, section A.4.2). The round trip of a link stands in its cost, on a scale on which
the longest link of the lab has 60000: the way is that of the lowest RTT, as with static routes. Each hop adds a little:
of two ways that are equally long that of fewer hops is taken. What a link adds by its name keeps two ways from costing
the same, for which of them is taken would be the protocol's own affair.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from minigts.topology.routing import Edge, Graph

LONGEST, HOP, BY_NAME = 60000, 4096, 1024
"""Of the longest link's round trip; of each hop; below this what a link adds by its name."""
ATTEMPTS = 32


def protocol_costs(nodes: int, edges: Sequence[Edge], names: Sequence[str]) -> list[int]:
    """Of each link one number, 1 to 65535. No two best ways cost the same, if one of the attempts gives that; a large
    lab of equal links may keep some that do, and then either may be taken.
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
    longest_ms = max((edge.rtt_ms for edge in edges), default=0.0) or 1.0
    by_name = (zlib.crc32(f"{attempt}/{name}".encode()) % BY_NAME for name in names)
    return [HOP + own + round(LONGEST * edge.rtt_ms / longest_ms) for edge, own in zip(edges, by_name, strict=True)]


def _ties(nodes: int, edges: Sequence[Edge], costs: Sequence[int]) -> int:
    """How many hosts and segments have two best ways from some host."""
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
    """For each node what the best way to each that it is joined with costs, itself at 0."""
    graph = Graph(nodes, edges, costs)
    return [{source: 0} | {step.node: step.cost for step in graph.steps(source)} for source in range(nodes)]

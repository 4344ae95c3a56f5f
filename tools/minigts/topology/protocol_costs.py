"""The cost of each link in the hosts' routing protocol. Pure, and the same for OSPF and BGP.

OSPF has sixteen bits for a cost (RFC 2328, section A.4.2). A cost has a part in proportion to the link's RTT, 60000 for
the longest link of the lab, so that the path of the lowest RTT is taken, as with static routes. A constant for each hop
prefers fewer hops among equal RTTs. A part derived from the link's name keeps two paths from costing the same, since
the protocol might take either.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from minigts.topology.routing import Edge, Graph

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
    longest_ms = max((edge.rtt_ms for edge in edges), default=0.0) or 1.0
    by_name = (zlib.crc32(f"{attempt}/{name}".encode()) % BY_NAME for name in names)
    return [HOP + own + round(LONGEST * edge.rtt_ms / longest_ms) for edge, own in zip(edges, by_name, strict=True)]


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

"""A plan's links as a small drawing in text: what is joined to what, with the round trip of each link.

A row and a ring are drawn as such, a star and other trees from their middle outwards, and anything else as a table of
who is joined to whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx as nx

from minigts.topology.parts import Switch
from minigts.topology.plan import Plan

WIDTH = 100
"""The most columns of a drawing; a longer row continues in the next line."""
MOST_IN_TABLE = 26
"""The most machines of a table; a larger one would be wider than any window."""


def draw(plan: Plan, *, round_trips: bool = True, width: int = WIDTH) -> list[str]:
    """The lines of the drawing, one part of the topology below the other; a row takes at most `width` columns.

    A pair is `ams ─ 10 ms ─ bra`, or without `round_trips` the link's delay, `ams ─ 5 ms ─ bra`. A switch stands
    in brackets.
    """
    graph: nx.Graph[str] = nx.Graph()
    labels = {each.name: f"[{each.name}]" if isinstance(each, Switch) else each.name for each in plan.machines}
    graph.add_nodes_from(labels[each.name] for each in plan.machines)
    for link in plan.links:
        first, second = (labels[end] for end in link.ends)
        before = graph.get_edge_data(first, second, {"rtts": []})["rtts"]
        there, back = (f"{way.delay_ms:g}" for way in link.ways)
        one_way = there if there == back else f"{there} and {back}"
        graph.add_edge(first, second, rtts=[*before, f"{link.rtt_ms:g}" if round_trips else one_way])
    order = list(graph)
    return [
        line
        for part in nx.connected_components(graph)
        for line in _part(
            nx.subgraph_view(graph, filter_node=part.__contains__), [node for node in order if node in part], width
        )
    ]


def _part(graph: nx.Graph[str], order: Sequence[str], width: int) -> Iterator[str]:
    degrees = dict(graph.degree())
    if len(order) == 1:
        yield order[0]
    elif nx.is_tree(graph) and max(degrees.values()) <= 2:
        first = next(node for node in order if degrees[node] == 1)
        yield from _row(graph, _from(graph, first), width)
    elif set(degrees.values()) == {2}:
        yield from _ring(graph, _from(graph, order[0]), width)
    elif nx.is_tree(graph) or len(order) > MOST_IN_TABLE or max(map(len, table := list(_table(graph, order)))) > width:
        yield from _tree(graph, order)
    else:
        yield from table


def _from(graph: nx.Graph[str], first: str) -> list[str]:
    """The nodes of a row or a ring in order."""
    return list(nx.dfs_preorder_nodes(graph, first))


def _row(graph: nx.Graph[str], nodes: Sequence[str], width: int) -> Iterator[str]:
    line = nodes[0]
    links = {pair: f" ─ {_rtt(graph, *pair)} ─" for pair in pairwise(nodes)}
    hanging = max(map(len, links.values()))
    for (node, following), link in links.items():
        last = following == nodes[-1]
        if len(line) + len(link) + 1 + len(following) + (0 if last else hanging) > width and line.strip() != node:
            yield line + link
            line = f"  {following}"
        else:
            line += f"{link} {following}"
    yield line


def _ring(graph: nx.Graph[str], nodes: Sequence[str], width: int) -> Iterator[str]:
    """A row whose last node is joined to its first."""
    rows = list(_row(graph, nodes, width - 6))
    closing = f" {_rtt(graph, nodes[-1], nodes[0])} "
    inner = max(map(len, rows))
    for number, row in enumerate(rows):
        left = "┌─ " if number == 0 else "│  "
        right = " ─┐" if number == len(rows) - 1 else "  "
        yield f"{left}{row}{'─' * (inner - len(row)) if right == ' ─┐' else ''}{right}".rstrip()
    yield f"└─{closing.center(inner + 2, '─')}─┘"


def _tree(graph: nx.Graph[str], order: Sequence[str]) -> Iterator[str]:
    """A tree from the node with the most links. After each other node stands the round trip of the link to it."""
    root = max(order, key=lambda node: (graph.degree(node), -order.index(node)))
    drawn: nx.Graph[str] = nx.Graph()
    drawn.add_nodes_from(graph)
    drawn.add_edges_from(graph.edges)
    nx.set_node_attributes(drawn, {node: node for node in graph}, "label")
    if nx.is_tree(graph):
        above = {node: parent for parent, node in nx.bfs_edges(graph, root)}
        labels = {node: f"{node}  {_rtt(graph, parent, node)}" for node, parent in above.items()}
        nx.set_node_attributes(drawn, labels, "label")
    for line in nx.generate_network_text(drawn, sources=[root]):
        yield line[4:]  # the root has no line above it


def _table(graph: nx.Graph[str], order: Sequence[str]) -> Iterator[str]:
    """A line and a column for each node; where they meet stands the round trip in ms of the link between the two."""
    cells = {(a, b): _rtt(graph, a, b, unit="") if graph.has_edge(a, b) else "·" for a in order for b in order}
    first = max(map(len, ("ms", *order)))
    width = max(map(len, (*order, *cells.values())))
    for number, node in enumerate(order[1:], 1):
        row = (f"{cells[node, other]:>{width}}" for other in order[:number])
        yield f"{node:{first}}  {'  '.join(row)}"
    yield f"{'ms':{first}}  {'  '.join(f'{node:>{width}}' for node in order[:-1])}"


def _rtt(graph: nx.Graph[str], first: str, second: str, unit: str = " ms") -> str:
    """A link's round trip, `10 ms`; for two links between the same machines `10, 20 ms`."""
    return ", ".join(graph.edges[first, second]["rtts"]) + unit

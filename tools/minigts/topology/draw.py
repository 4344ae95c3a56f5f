"""A plan's links as a small drawing in text: what is joined to what, with the round trip of each link.

A row and a ring are drawn as such, a star and other trees from their middle outwards, and anything else as a table of
who is joined to whom.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from minigts.topology.plan.elements import Switch
from minigts.topology.plan.plan import Plan

WIDTH = 100
"""The most columns of a drawing; a longer row continues in the next line."""
MOST_IN_TABLE = 26
"""The most machines of a table; a larger one would be wider than any window."""

Graph: TypeAlias = "dict[str, dict[str, tuple[str, ...]]]"
"""The round trips of links by machine and neighbour, both in the order of the plan."""


def draw(plan: Plan, *, round_trips: bool = True, width: int = WIDTH) -> list[str]:
    """The lines of the drawing, one part of the topology below the other; a row takes at most `width` columns.

    A pair is `ams ─ 10 ms ─ bra`, or without `round_trips` the link's delay, `ams ─ 5 ms ─ bra`. A switch stands
    in brackets.
    """
    labels = {each.name: f"[{each.name}]" if isinstance(each, Switch) else each.name for each in plan.machines}
    graph: Graph = {labels[each.name]: {} for each in plan.machines}
    for link in plan.links:
        first, second = (labels[end] for end in link.ends)
        there, back = (f"{way.delay_ms:g}" for way in link.ways)
        one_way = there if there == back else f"{there} and {back}"
        rtts = (*graph[first].get(second, ()), f"{link.rtt_ms:g}" if round_trips else one_way)
        graph[first][second] = graph[second][first] = rtts
    return [line for part in _parts(graph) for line in _part(part, width)]


def _parts(graph: Graph) -> Iterator[Graph]:
    """What hangs together, a graph each."""
    left = dict(graph)
    while left:
        reached = {*_from(left, next(iter(left)))}
        yield {node: left.pop(node) for node in [*left] if node in reached}


def _part(graph: Graph, width: int) -> Iterator[str]:
    order, degrees = [*graph], {node: len(graph[node]) for node in graph}
    ends = [node for node in order if degrees[node] == 1]
    is_tree = sum(degrees.values()) == 2 * (len(order) - 1)
    if len(order) == 1:
        yield order[0]
    elif is_tree and max(degrees.values()) <= 2:
        yield from _row(graph, _from(graph, ends[0]), width)
    elif {*degrees.values()} == {2}:
        yield from _ring(graph, _from(graph, order[0]), width)
    elif is_tree or len(order) > MOST_IN_TABLE or max(map(len, table := list(_table(graph, order)))) > width:
        yield from _tree(graph, is_tree=is_tree)
    else:
        yield from table


def _from(graph: Graph, first: str) -> list[str]:
    """The nodes that hang together with that one, as far as it goes along each way before the next: those of a row or a
    ring are in order then."""
    found, ways = {first: None}, [iter(graph[first])]
    while ways:
        if (node := next((each for each in ways[-1] if each not in found), None)) is None:
            ways.pop()
        else:
            found[node] = None
            ways.append(iter(graph[node]))
    return [*found]


def _row(graph: Graph, nodes: Sequence[str], width: int) -> Iterator[str]:
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


def _ring(graph: Graph, nodes: Sequence[str], width: int) -> Iterator[str]:
    """A row whose last node is joined to its first."""
    rows = list(_row(graph, nodes, width - 6))
    closing = f" {_rtt(graph, nodes[-1], nodes[0])} "
    inner = max(map(len, rows))
    for number, row in enumerate(rows):
        left = "┌─ " if number == 0 else "│  "
        right = " ─┐" if number == len(rows) - 1 else "  "
        yield f"{left}{row}{'─' * (inner - len(row)) if right == ' ─┐' else ''}{right}".rstrip()
    yield f"└─{closing.center(inner + 2, '─')}─┘"


def _tree(graph: Graph, *, is_tree: bool) -> Iterator[str]:
    """The drawing from the node with the most links. In a tree each other node is followed by its link's round trip."""
    drawn: Graph = {node: {} for node in graph}
    for node, beside in graph.items():
        for other, rtts in beside.items():
            drawn[node][other] = drawn[other][node] = rtts
    root = max(graph, key=lambda node: len(graph[node]))
    labels = {node: node for node in graph}
    if is_tree:
        above: dict[str, str] = {}
        for node in _from(graph, root):
            for child in graph[node]:
                above.setdefault(child, node)
        del above[root]
        labels |= {node: f"{node}  {_rtt(graph, parent, node)}" for node, parent in above.items()}
    yield from _branches(drawn, root, labels)


def _branches(graph: Graph, root: str, labels: Mapping[str, str]) -> Iterator[str]:
    """The root, and below each node its neighbours that have not been drawn yet, one way to its end before the next.

    A link that closes a ring stands behind the later of its ends, as in `├── c ─ a`, and ` ...` below the earlier one.
    """
    drawn = {root}
    yield labels[root]
    # Each node on the path: its neighbours that are left, the text before them, whether one is drawn elsewhere.
    way = [(root, deque(graph[root]), "", False)]
    while way:
        node, left, before, elsewhere = way.pop()
        if not left:
            if elsewhere:
                yield f"{before}└──  ..."
            continue
        child = left.popleft()
        way.append((node, left, before, elsewhere or child in drawn))
        if child in drawn:
            continue
        drawn.add(child)
        is_last = not left and not elsewhere
        closing = [labels[each] for each in graph[child] if each in drawn and each != node]
        ring = f" ─ {', '.join(closing)}" if closing else ""
        yield f"{before}{'└── ' if is_last else '├── '}{labels[child]}{ring}"
        below = deque(each for each in graph[child] if each not in drawn)
        way.append((child, below, before + ("    " if is_last else "│   "), False))


def _table(graph: Graph, order: Sequence[str]) -> Iterator[str]:
    """A line and a column for each node; where they meet stands the round trip in ms of the link between the two."""
    cells = {(a, b): _rtt(graph, a, b, unit="") if b in graph[a] else "·" for a in order for b in order}
    first = max(map(len, ("ms", *order)))
    width = max(map(len, (*order, *cells.values())))
    for number, node in enumerate(order[1:], 1):
        row = (f"{cells[node, other]:>{width}}" for other in order[:number])
        yield f"{node:{first}}  {'  '.join(row)}"
    yield f"{'ms':{first}}  {'  '.join(f'{node:>{width}}' for node in order[:-1])}"


def _rtt(graph: Graph, first: str, second: str, unit: str = " ms") -> str:
    """A link's round trip, `10 ms`; for two links between the same machines `10, 20 ms`."""
    return ", ".join(graph[first][second]) + unit

"""Which nodes of a graph edges join. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def parts(nodes: Iterable[N], edges: Iterable[tuple[N, N]]) -> list[set[N]]:
    """The nodes, and those that edges name beside them, by what is joined; in order of each part's first node."""
    neighbours: dict[N, list[N]] = {node: [] for node in nodes}
    for first, second in edges:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    found: list[set[N]] = []
    seen: set[N] = set()
    for start in neighbours:
        if start in seen:
            continue
        part, waiting = {start}, [start]
        while waiting:
            new = [node for node in neighbours[waiting.pop()] if node not in part]
            part.update(new)
            waiting.extend(new)
        found.append(part)
        seen |= part
    return found

"""Where hosts stand in a drawing of the topology. Pure: names in, coordinates out, one unit from host to host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from minigts.topology.plan import Plan

ROW = 6
"""Hosts in a row before a chain turns back, like an ox at the plough."""
DOWN = 1.4
"""From one row to the next: room for a label beside the link that turns."""

Position = tuple[float, float]


Neighbours = Mapping[str, Sequence[str]]


def positions(plan: Plan) -> dict[str, Position]:
    """x to the right, y upwards. Each connected part keeps its own shape; parts are stacked downwards."""
    neighbours: dict[str, list[str]] = {machine.name: [] for machine in plan.machines}
    for one, other in (link.ends for link in plan.links):
        neighbours[one].append(other)
        neighbours[other].append(one)
    placed: dict[str, Position] = {}
    top = 0.0
    for name in neighbours:
        if name in placed:
            continue
        shape = _shape(neighbours, _walk(neighbours, name))
        highest = max(y for _, y in shape.values())
        left = min(x for x, _ in shape.values())
        placed |= {host: (x - left, y - highest + top) for host, (x, y) in shape.items()}
        top = min(y for _, y in placed.values()) - 1.0
    return placed


def _walk(neighbours: Neighbours, start: str) -> list[str]:
    """Every host that can be reached from `start`, depth first, neighbours in the order of the file."""
    found: dict[str, None] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting.extend(reversed(neighbours[name]))
    return list(found)


def _shape(neighbours: Neighbours, names: Sequence[str]) -> dict[str, Position]:
    """Coordinates of one connected part: a row, a star, or else a circle."""
    degrees = {name: len(neighbours[name]) for name in names}
    is_tree = sum(degrees.values()) == 2 * (len(names) - 1)
    if is_tree and max(degrees.values()) <= 2:
        end = next(name for name in neighbours if degrees.get(name, 2) <= 1)
        return _chain(_walk(neighbours, end))
    centre = max(names, key=lambda name: degrees[name])
    if is_tree and degrees[centre] == len(names) - 1:
        return {centre: (0.0, 0.0)} | _circle(neighbours[centre], least=1.25, apart=1.5)
    return _circle(names, least=1.0)


def _chain(names: Sequence[str]) -> dict[str, Position]:
    """A row; a long one turns back after ROW hosts."""
    placed = {}
    for index, name in enumerate(names):
        row, column = divmod(index, ROW)
        placed[name] = (float(column if row % 2 == 0 else ROW - 1 - column), -DOWN * row)
    return placed


def _circle(names: Sequence[str], least: float, apart: float = 1.0) -> dict[str, Position]:
    """Clockwise from the top, wide enough that neighbours stand `apart`."""
    radius = max(least, apart / 2 / math.sin(math.pi / max(2, len(names))))
    angles = [math.pi / 2 - 2 * math.pi * index / len(names) for index in range(len(names))]
    return {
        name: (radius * math.cos(angle), radius * math.sin(angle)) for name, angle in zip(names, angles, strict=True)
    }

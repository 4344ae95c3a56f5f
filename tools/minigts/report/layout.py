"""Where hosts stand in a drawing of the topology. Pure: names in, coordinates out, one unit from host to host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from minigts.topology.plan import Plan

ROW = 6
"""Hosts in a row before a chain turns back, like an ox at the plough."""
DOWN = 1.4
"""From one row to the next: room for a label beside the link that turns."""

APART, REACH = 1.6, 1.25
"""Between those of a row that others hang on, and from one of them to what hangs on it."""

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
    """Coordinates of one connected part: a row, a star, a row with leaves around it, or else a circle."""
    degrees = {name: len(neighbours[name]) for name in names}
    is_tree = sum(degrees.values()) == 2 * (len(names) - 1)
    if is_tree and max(degrees.values()) <= 2:
        end = next(name for name in neighbours if degrees.get(name, 2) <= 1)
        return _chain(_walk(neighbours, end))
    centre = max(names, key=lambda name: degrees[name])
    if is_tree and degrees[centre] == len(names) - 1:
        return {centre: (0.0, 0.0)} | _circle(neighbours[centre], least=1.25, apart=1.5)
    inner = [name for name in names if degrees[name] > 1]
    spine = {name: [other for other in neighbours[name] if other in inner] for name in inner}
    if is_tree and max(map(len, spine.values())) <= 2:
        end = next(name for name in inner if len(spine[name]) <= 1)
        leaves = {name: [other for other in neighbours[name] if other not in spine] for name in _walk(spine, end)}
        return _with_leaves(leaves)
    return _circle(names, least=1.0)


def _with_leaves(leaves: Neighbours) -> dict[str, Position]:
    """A row of those that have several links, as switches do, each with what hangs on it around it: at both ends of the
    row outwards, else above and below in turns."""
    placed: dict[str, Position] = {}
    last = len(leaves) - 1
    for column, (name, hanging) in enumerate(leaves.items()):
        x = APART * column
        placed[name] = (x, 0.0)
        outwards = math.pi if column == 0 else 0.0
        for index, leaf in enumerate(hanging):
            angle = outwards + (index - (len(hanging) - 1) / 2) * math.pi / max(3, len(hanging) + 1)
            if 0 < column < last:
                angle = math.pi / 2 * (1 if index % 2 == 0 else -1) + (index // 2) * math.pi / 8
            placed[leaf] = (x + REACH * math.cos(angle), REACH * math.sin(angle))
    return placed


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

"""Draws a plan: hosts and switches with their locations, and links with round-trip time and rate, or those of each
direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from minigts.language.figures import digits
from minigts.report import style
from minigts.topology.plan.elements import Host, Link, Switch
from minigts.topology.plan.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NODE = 0.2
"""A host's radius, where neighbours are 1 apart."""
INSIDE = 4
"""How many letters of a name fit into a disc; where one has more, all names of its figure stand beside theirs."""
CLEAR = math.radians(40)
"""The least angle between a machine's words and its links, where there is such a place."""
WORDS = 0.7
"""The room that words need to the left or to the right of a machine."""
ROW = 6
"""The hosts in a row before a chain turns back."""
DOWN = 1.4
"""The distance between rows, with space for a label beside the link between them."""
APART, REACH = 1.6, 1.25
"""The distance between inner machines in a row, and from one of them to its leaves."""

Position = tuple[float, float]
Neighbours = Mapping[str, Sequence[str]]


def topology(plan: Plan) -> Figure:
    """The figure of a plan: a chain as a row, a star around its centre, a row with leaves, or else a circle with
    leaves."""
    placed = positions(plan)
    right = max(x for x, _ in placed.values())
    bottom = min(y for _, y in placed.values())
    inside = all(len(machine.name) <= INSIDE for machine in plan.machines)
    foot = 0.55 if any(_beside(machine, inside=inside) for machine in plan.machines) else 0.3
    across, down = right + 0.7, foot + 0.5 - bottom
    unit = min(1.25, style.WIDTH_INCH / across)
    with style.sheet(unit * down, constrained=False) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        middle = style.WIDTH_INCH / unit / 2
        axes.set_xlim(right / 2 - middle, right / 2 + middle)
        axes.set_ylim(bottom - foot, 0.5)
        for link in plan.links:
            _draw_link(axes, link, placed[link.ends[0]], placed[link.ends[1]])
        for machine in plan.machines:
            ends = {end for link in plan.links if machine.name in link.ends for end in link.ends} - {machine.name}
            side = _free_side(placed[machine.name], [placed[name] for name in ends], right)
            _draw_machine(axes, machine, placed[machine.name], NODE * unit, inside=inside, side=side)
    return figure


def _free_side(at: Position, neighbours: Sequence[Position], right: float) -> Position:
    """Where a machine's words stand beside it, of length 1: beneath, or where no link runs from it."""
    links = [math.atan2(y - at[1], x - at[0]) for x, y in neighbours]

    def clear(side: Position) -> float:
        own = math.atan2(side[1], side[0])
        return min((abs(math.remainder(own - each, math.tau)) for each in links), default=math.pi)

    sides = [(0.0, -1.0), (0.0, 1.0)]
    sides += [(1.0, 0.0)] if at[0] + NODE + WORDS < right + 0.5 else []
    sides += [(-1.0, 0.0)] if at[0] - NODE - WORDS > -0.5 else []
    return next((each for each in sides if clear(each) > CLEAR), max(sides, key=clear))


def _draw_link(axes: Axes, link: Link, start: Position, end: Position) -> None:
    axes.plot([start[0], end[0]], [start[1], end[1]], color=style.INK, linewidth=1.2, zorder=1)
    level = abs(start[1] - end[1]) < 0.3
    axes.annotate(
        link_words(link, _arrows(start, end, level=level)),
        ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2),
        xytext=(0, 9) if level else (0, 0),
        textcoords="offset points",
        ha="center",
        va="bottom" if level else "center",
        fontsize=8,
        linespacing=1.15,
        bbox=None if level else {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.0},
        zorder=2,
    )


def _arrows(start: Position, end: Position, *, level: bool) -> tuple[str, str]:
    """The arrows from a link's first end to its second, and back, as they are drawn."""
    if level:
        return ("→", "←") if start[0] <= end[0] else ("←", "→")
    return ("↑", "↓") if start[1] <= end[1] else ("↓", "↑")


def link_words(link: Link, arrows: tuple[str, str] = ("→", "←")) -> str:
    """The link's properties, one to a line: `21.75 ms`, `50 Mbit/s`, `0.1 % loss`; unlimited ones are left out. Where
    its directions differ, both are given: `→10 ←30 ms`, below the round trip.
    """
    there, back = link.ways

    def both(first: float, second: float, unit: str) -> str:
        one, other = digits(first, 6), digits(second, 6)
        return f"{one} {unit}" if first == second else f"{arrows[0]}{one} {arrows[1]}{other} {unit}"

    parts = [f"{digits(link.rtt_ms, 6)} ms"]
    if there.delay_ms != back.delay_ms:
        parts.append(both(there.delay_ms, back.delay_ms, "ms"))
    if there.rate_mbit is not None and back.rate_mbit is not None:
        parts.append(both(there.rate_mbit, back.rate_mbit, "Mbit/s"))
    if link.lossy:
        parts.append(both(there.loss_percent, back.loss_percent, "% loss"))
    return "\n".join(parts)


def _draw_machine(
    axes: Axes, machine: Host | Switch, at: Position, radius_inch: float, *, inside: bool, side: Position
) -> None:
    """A disc for a host, a square for a switch; its name inside or beside it, and the location beside it."""
    axes.plot(
        *at,
        marker="s" if isinstance(machine, Switch) else "o",
        markersize=2 * 72 * radius_inch,
        markerfacecolor=style.PAPER,
        markeredgecolor=style.INK,
        markeredgewidth=1.4,
        zorder=3,
    )
    if inside:
        axes.text(*at, machine.name, ha="center", va="center_baseline", fontsize=9, weight="bold", zorder=4)
    words = "\n".join(_beside(machine, inside=inside))
    if not words:
        return
    axes.text(
        at[0] + side[0] * (NODE + 0.06),
        at[1] + side[1] * (NODE + 0.06),
        words,
        ha={0.0: "center", 1.0: "left", -1.0: "right"}[side[0]],
        va={0.0: "center", 1.0: "bottom", -1.0: "top"}[side[1]],
        fontsize=8,
        linespacing=1.1,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8},
        zorder=4,
    )


def _beside(machine: Host | Switch, *, inside: bool) -> list[str]:
    """The words beside the disc: a name that is not inside, and a location other than the name."""
    words = [] if inside else [machine.name]
    if machine.location and machine.location.casefold() != machine.name.casefold():
        words.append(machine.location)
    return [word if len(word) <= 14 else word[:13] + "…" for word in words]


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
    ring = [name for name in names if name in spine]
    if len(ring) in (0, len(names)):
        return _circle(names, least=1.0)
    return _ring_with_leaves({name: [other for other in neighbours[name] if other not in spine] for name in ring})


def _ring_with_leaves(leaves: Neighbours) -> dict[str, Position]:
    """A circle of machines with several links, each with its leaves outside of it, so that no link of a leaf runs
    through a machine."""
    placed = _circle(list(leaves), least=1.0, apart=1.25)
    for name, hanging in leaves.items():
        x, y = placed[name]
        outwards = math.atan2(y, x)
        for index, leaf in enumerate(hanging):
            angle = outwards + (index - (len(hanging) - 1) / 2) * math.pi / max(3, len(hanging) + 1)
            placed[leaf] = (x + math.cos(angle), y + math.sin(angle))
    return placed


def _with_leaves(leaves: Neighbours) -> dict[str, Position]:
    """A row of machines with several links, such as switches, each with its leaves around it: outwards at both ends of
    the row, otherwise above and below in turns."""
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
    """A circle, clockwise from the top, so wide that neighbours are `apart`."""
    radius = max(least, apart / 2 / math.sin(math.pi / max(2, len(names))))
    angles = [math.pi / 2 - 2 * math.pi * index / len(names) for index in range(len(names))]
    return {
        name: (radius * math.cos(angle), radius * math.sin(angle)) for name, angle in zip(names, angles, strict=True)
    }

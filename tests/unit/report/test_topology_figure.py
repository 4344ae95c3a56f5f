"""The drawing of a plan: where names stand, and that links run through no machine but their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from minigts import overlays, paths
from minigts.report.topology_figure import NODE, positions, topology
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

ROOT = paths.project_root()
FILES = {
    name: ROOT / "topologies" / f"{name}.yaml"
    for name in ("pair", "triangle", "clos", "cluster-zones", "equal-ways", "switched", "star", "vlans", "chain21")
} | {"three-hosts": ROOT / "docs" / "examples" / "three-hosts.yaml"}


def plan_of(file: Path) -> Plan:
    return load(file, known_overlays=overlays.known_names())


def words(figure: Figure, plan: Plan) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """The boxes of the machines' words in pixels: left, bottom, right, top."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    names = {machine.name for machine in plan.machines}
    for each in figure.axes[0].texts:
        if each.get_text().split("\n")[0] in names:
            box = each.get_window_extent(renderer)
            yield each.get_text(), (box.x0, box.y0, box.x1, box.y1)


@pytest.mark.parametrize("name", [name for name in FILES if name != "star"])
def test_no_name_lies_on_a_link_of_its_machine(name: str) -> None:
    """A centre of nine links has no place without one."""
    plan = plan_of(FILES[name])
    figure, placed = topology(plan), positions(plan)
    to_pixels = figure.axes[0].transData.transform
    discs = {each: to_pixels(at) for each, at in placed.items()}
    own_links = {machine.name: [link for link in plan.links if machine.name in link.ends] for machine in plan.machines}
    beside = [(text.split("\n")[0], box) for text, box in words(figure, plan)]
    inside = [box[0] < discs[own][0] < box[2] and box[1] < discs[own][1] < box[3] for own, box in beside]
    assert len(set(inside)) == 1, "all names stand alike"
    for own, (left, bottom, right, top) in beside if not inside[0] else []:
        for link in own_links[own]:
            (ax, ay), (bx, by) = (discs[end] for end in link.ends)
            points = ((ax + part / 200 * (bx - ax), ay + part / 200 * (by - ay)) for part in range(201))
            assert not any(left < x < right and bottom < y < top for x, y in points), f"{own} lies on {link.name}"


@pytest.mark.parametrize("name", ["clos", "cluster-zones", "switched", "star", "vlans", "chain21"])
def test_no_link_runs_through_another_machine_and_no_two_machines_meet(name: str) -> None:
    plan = plan_of(FILES[name])
    placed = positions(plan)
    assert all(_apart(one, other) > 2 * NODE for one, other in itertools.combinations(placed.values(), 2))
    for link in plan.links:
        (ax, ay), (bx, by) = (placed[end] for end in link.ends)
        points = [(ax + part / 50 * (bx - ax), ay + part / 50 * (by - ay)) for part in range(51)]
        for machine, at in placed.items():
            if machine not in link.ends:
                assert min(_apart(at, point) for point in points) > NODE, f"{link.name} runs through {machine}"


def _apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    return float(((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2) ** 0.5)

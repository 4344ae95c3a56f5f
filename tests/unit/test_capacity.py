"""How many labs fit: `minigts limits`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.machine import memory, tasks
from minigts.providers.uml import capacity, demand
from minigts.topology.load import load

PAIR = Path(__file__).parents[2] / "topologies" / "pair.yaml"


def test_what_leaves_the_fewest_labs_is_first() -> None:
    plan = load(PAIR, known_overlays=["none", "swarm"])
    takes_mb = sum(kernel.takes_mb("none") for kernel in demand.of_plan(plan))
    roomy = memory.Limit("memory", 10 * takes_mb, 20 * takes_mb, "")
    first, second = capacity.bounds(plan, "none", [roomy], [tasks.Limit("ulimit", 65, 100)])
    assert (first.by, first.of_a_lab, first.labs, first.labs_at_most) == ("ulimit", 22, 2, 4)
    assert (second.by, second.labs, second.labs_at_most) == ("memory", 10, 20)


def test_a_control_group_bounds_processes(tmp_path: Path) -> None:
    group = tmp_path / "groups" / "lab"
    group.mkdir(parents=True)
    (group / "pids.max").write_text("100\n")
    (group / "pids.current").write_text("40\n")
    (group.parent / "pids.max").write_text("max\n")
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/lab\n")
    (proc / "self" / "mountinfo").write_text(f"30 20 0:26 / {group.parent} rw - cgroup2 cgroup2 rw\n")
    assert tasks.Limit(f"pids.max of the control group {group}", 60, 100) in tasks.limits(proc)


def test_the_program_says_how_many() -> None:
    done = CliRunner().invoke(app, ["limits", str(PAIR), "--overlay", "swarm", "--json"])
    assert done.exit_code == 0
    bounds = json.loads(done.stdout)["bounds"]
    assert bounds[0]["labs"] == min(bound["free"] // bound["of_a_lab"] for bound in bounds)

"""The examples of docs/explore.md: their topologies and plans of faults can be read, and their clients print what a
history is made of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from minigts import paths
from minigts.explore import draws, faults, histories
from minigts.explore.histories import Heard
from minigts.topology.read.load import load

EXAMPLES = paths.project_root() / "docs" / "examples" / "explore"
TOPOLOGIES = sorted(EXAMPLES.glob("*.yaml"))
CLIENT = """
from history import Refused, ask, values

def refuse():
    raise Refused("no")

def go_silent():
    raise TimeoutError("late")

for value in values(0.05, 0.01):
    ask(lambda: {"value": value}, op="read", key="x")
ask(refuse, op="write", key="x", value="1")
ask(go_silent, op="write", key="x", value="2")
"""


FOLDERS = {
    "sentinel": "valkey",
    "postgresql-transactions": "postgresql",
    "etcd-alone": "etcd",
}
"""The folders of examples that have not their topology's name."""
PLANS = {"postgresql-transactions": (), "etcd-alone": ("power",), "nats": ("faults", "power")}
"""The plans of examples that have others than `faults`; clients of the first alone disturb each other."""
MACHINES = {"nats": 4, "etcd-alone": 2}
"""How many machines there are; clients of these have a host of their own."""


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda path: path.stem)
def test_an_example_can_be_read(topology: Path) -> None:
    plan = load(topology, time="virtual")
    assert len(plan.machines) == MACHINES.get(topology.stem, 3)
    of = EXAMPLES / FOLDERS.get(topology.stem, topology.stem)
    for name in PLANS.get(topology.stem, ("faults",)):
        read = faults.parse((of / f"{name}.yaml").read_text(), f"{name}.yaml", plan)
        assert any(draws.draw(read, plan, seed) for seed in range(1, 4))
    for program in of.glob("*.py"):
        compile(program.read_text(), str(program), "exec")
    assert list(of.glob("test_*.py"))


def test_a_client_says_what_it_asked_and_how_that_was_answered() -> None:
    argv = [sys.executable, "-c", CLIENT]
    said = subprocess.run(argv, cwd=EXAMPLES, capture_output=True, check=True, timeout=60).stdout
    lines = [histories.line_of("a", line) for line in said.splitlines()]
    found = histories.operations(Heard(at_ns, "a", told) for at_ns, told in lines)
    assert [(each["answer"], each["value"]) for each in found[-2:]] == [("fail", "1"), ("info", "2")]
    assert len(found) > 3
    assert all(each["answer"] == "ok" and str(each["value"]).endswith(f"-{n}") for n, each in enumerate(found[:-2], 1))
    assert all(json.loads(line)["at"] for line in said.splitlines())

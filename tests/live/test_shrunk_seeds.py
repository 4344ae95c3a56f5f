"""`minigts replay --shrink` on kernels: of a failing seed's faults one is left, and it is as short as can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import PATIENCE_S, explored
from live.program import Program, Traces
from minigts.explore import folder
from minigts.explore.draws import draw
from minigts.explore.faults import parse
from minigts.explore.work import Reduced
from minigts.topology.read.load import parse as parse_topology

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
SEED = 1
PAIR = "name: pair\nlinks: [{ends: [a, b]}, {ends: [b, c]}]\nhosts: {a: , b: , c: }\n"
FAULTS = """
faults:
  loss: {every: 3s, for: 3s to 5s, loss: 100%, of: [a-b]}
  slow-link: {every: 3s, for: 1s to 2s, delay: 50ms}
  length: 10s
  at_most: 2
"""
TEST = """
def test_echoes(lab):
    lost = [
        number for number in range(12)
        if lab.host("a").run("ping", "-c", "1", "-W", "0.9", lab.host("b").address, check=False).code
        or lab.sleep(1)
    ]
    assert not lost, f"{len(lost)} echoes are lost"
"""
OF_ACTS = """
def test_a_file_stays(lab, course):
    lab.host("a").run("touch", "/there")
    for host in ("b", "a", "b"):
        course.sleep(1)
        if course.act(f"remove the file of {host}"):
            lab.host(host).run("rm", "-f", "/there")
    assert lab.host("a").run("test", "-e", "/there", check=False).code == 0, "the file is gone"
"""


def test_one_fault_is_left_and_half_of_it_would_be_too_short(program: Program, traces: Traces, tmp_path: Path) -> None:
    for name, text in (("pair.yaml", PAIR), ("faults.yaml", FAULTS), ("test_echoes.py", TEST)):
        (tmp_path / name).write_text(text)
    words = (tmp_path / "pair.yaml", tmp_path / "test_echoes.py", "--seeds", str(SEED))
    made, of_seeds = explored(program, tmp_path / "results", *words, faults=tmp_path / "faults.yaml")
    assert of_seeds[SEED].verdict == "failed"
    started = program.start("replay", str(made), "--seed", str(SEED), "--shrink")
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, said + told
    found = folder.shrunk(made, SEED)
    plan = parse_topology(PAIR, "pair.yaml", time="virtual")
    drawn = {fault.number: fault for fault in draw(parse(FAULTS, "faults.yaml", plan), plan, SEED)}
    assert found is not None
    ((number, for_s),) = found.for_s.items()
    assert found.faults == (number,)
    assert drawn[number].kind == "loss"
    assert for_s < drawn[number].for_s / 2, "an echo is lost within a second"
    assert len(drawn) > 2
    started = program.start("replay", str(made), "--seed", str(SEED), "--shrunk")
    said, told = started.communicate(timeout=PATIENCE_S)
    assert "echoes are lost" in said + told
    assert not traces.left()


def test_of_what_the_test_does_itself_one_act_is_left(program: Program, traces: Traces, tmp_path: Path) -> None:
    for name, text in (("pair.yaml", PAIR), ("test_file.py", OF_ACTS)):
        (tmp_path / name).write_text(text)
    words = (tmp_path / "pair.yaml", tmp_path / "test_file.py", "--seeds", str(SEED))
    made, of_seeds = explored(program, tmp_path / "results", *words)
    assert of_seeds[SEED].verdict == "failed"
    started = program.start("replay", str(made), "--seed", str(SEED), "--shrink")
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, said + told
    assert "act 2: remove the file of a" in said
    assert folder.shrunk(made, SEED) == Reduced(faults=(), without=(1, 3))
    assert not traces.left()

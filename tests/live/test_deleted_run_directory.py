"""A lab whose run directory somebody deletes ends by itself, since no `minigts down` finds it any more."""

from __future__ import annotations

import shutil

import pytest

from live.program import TOPOLOGIES, Program, Traces, processes_of, until


@pytest.mark.uml
@pytest.mark.parametrize(
    ("time", "made_anew"), [pytest.param("virtual", True, marks=pytest.mark.virtual), ("real", False)]
)
def test_nothing_runs_on_once_the_run_directory_is_gone(
    program: Program, traces: Traces, time: str, made_anew: bool
) -> None:
    program.succeeds("up", str(TOPOLOGIES / "pair.yaml"), "--time", time, "--certify", "quick")
    traces.look()
    rundir = program.rundir("pair")
    shutil.rmtree(rundir)
    if made_anew:
        rundir.mkdir()
        (rundir / "mine").write_text("of another")
    assert until(lambda: not processes_of(program.state)), processes_of(program.state)
    if made_anew:
        assert [(each.name, each.read_text()) for each in rundir.iterdir()] == [("mine", "of another")]
        shutil.rmtree(rundir)
    assert traces.left(but="labs") == []
    assert [each.name for each in rundir.parent.iterdir()] == [".pair.lock"], "an empty file, of commands"
    assert "no lab is up" in program.run("status").stderr
    program.succeeds("up", str(TOPOLOGIES / "pair.yaml"), "--time", time, "--certify", "quick")
    program.succeeds("down")
    assert traces.left() == []

"""The first lesson as a student does it, from start to a check that passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import Program

pytestmark = pytest.mark.virtual


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "state")
    yield made
    made.run("down", "--all")


def test_a_student_predicts_measures_and_changes_the_lab(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    here = ("--folder", str(folder))
    program.succeeds("lesson", "1", "start", *here)
    hidden = program.succeeds("up", str(folder / "topology.yaml"))
    assert "all within tolerance" in hidden
    assert "65.0" not in hidden
    assert program.run("explain", "ams-bra").returncode == 2
    assert "predict first" in program.run("lesson", "1", "check", *here).stdout
    program.succeeds("lesson", "1", "predict", "32.5ms", *here)
    assert "that is one way" in program.run("lesson", "1", "check", *here).stdout
    average = program.succeeds("exec", "ams", "--", "ping", "-q", "-c", "3", "mil").rsplit(" = ", 1)[1].split("/")[1]
    (folder / "answers.yaml").write_text(f"answers: {{to_mil: {average}ms, delay: 38ms}}\n")
    before = program.run("lesson", "1", "check", *here)
    assert (before.returncode, "as it was handed out; set it" in before.stdout) == (1, True)
    program.succeeds("set", "bra-lju", "delay=38ms")
    assert program.succeeds("lesson", "1", "check", *here).endswith("lesson 1: passed\n")

"""What `minigts init` has written works as it stands: topology, experiment, test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from live.program import Program

pytestmark = pytest.mark.virtual
LIMIT_S = 200.0


def minigts(program: Program, directory: Path, *arguments: str) -> str:
    """What it says on both streams, from a directory of the user's."""
    settings = program._settings() | {"cwd": directory, "stderr": subprocess.STDOUT}
    argv = [sys.executable, "-P", "-m", "minigts", *arguments]
    done = subprocess.run(argv, text=True, timeout=LIMIT_S, check=False, **settings)
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


def test_the_topology_keeps_what_it_expects(program: Program, tmp_path: Path) -> None:
    minigts(program, tmp_path, "init", "course")
    minigts(program, tmp_path, "up", "course.yaml")
    assert "left-right" in minigts(program, tmp_path, "check")


@pytest.mark.nightly
def test_the_experiment_finds_which_claims_hold_and_which_could_not_fail(program: Program, tmp_path: Path) -> None:
    minigts(program, tmp_path, "init", "course")
    minigts(program, tmp_path, "run", "course-experiment.yaml", "--results", str(tmp_path / "results"))
    (claims,) = (tmp_path / "results").glob("course-*/claims.json")
    verdicts = [claim["verdict"] for claim in json.loads(claims.read_text())]
    assert verdicts == ["vacuous", "vacuous", "held"]


@pytest.mark.nightly
def test_the_tests_pass(program: Program, tmp_path: Path) -> None:
    minigts(program, tmp_path, "init", "course")
    said = minigts(program, tmp_path, "test", "--minigts", "course.yaml", "-p", "no:cacheprovider", "test_course.py")
    assert "4 passed" in said

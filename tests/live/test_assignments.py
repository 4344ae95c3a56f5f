"""Each assignment as its teacher grades it: what is handed out fails, the solution has every point, and a submission
that is not of plain files counts as what is handed out."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from live.program import PROJECT

ASSIGNMENTS = PROJECT / "docs" / "assignments"
POINTS = {"bufferbloat": (0, 14), "mini-internet": (3, 35), "hijack": (2, 11)}
"""Of what is handed out, as nothing in it is broken; and of the solution, which are all."""


@pytest.mark.virtual
@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("assignment", POINTS)
def test_what_is_handed_out_fails_and_the_solution_has_every_point(tmp_path: Path, assignment: str) -> None:
    solved, linked = tmp_path / "submissions" / "solved", tmp_path / "submissions" / "linked"
    solved.mkdir(parents=True)
    linked.mkdir()
    for file in (ASSIGNMENTS / assignment / "solution").iterdir():
        (solved / file.name).write_bytes(file.read_bytes())
        (linked / file.name).symlink_to(file)
    settings = os.environ | {"MINIGTS": str(PROJECT / "minigts"), "MINIGTS_STATE": str(tmp_path / "state")}
    argv = [ASSIGNMENTS / "grade.sh", assignment, tmp_path / "submissions", tmp_path / "grades"]
    done = subprocess.run(argv, env=settings, capture_output=True, text=True, check=False)
    told = "".join(file.read_text() for file in (tmp_path / "grades").glob("*.txt"))
    started, whole = POINTS[assignment]
    assert done.stdout.splitlines() == [f"linked: {started} of {whole}", f"solved: {whole} of {whole}"], told
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hijack"], "three words"),
        (["nosuch", ".", "grades"], "there is no assignment nosuch"),
        (["hijack", "nosuch", "grades"], "there is no folder nosuch"),
        (["hijack", ".", "grades"], "there is no folder in ."),
    ],
)
def test_a_grading_that_cannot_begin_says_why(tmp_path: Path, words: list[str], message: str) -> None:
    done = subprocess.run([ASSIGNMENTS / "grade.sh", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.search(rf"^grade.sh: {re.escape(message)}", done.stderr)

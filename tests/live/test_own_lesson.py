"""A teacher's own lesson, the sample of docs/examples: from its start to a check that passes, and its grade."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from live.program import PROJECT, Program

pytestmark = [
    pytest.mark.uml,
    pytest.mark.virtual,
    pytest.mark.touched("docs/examples/own-lesson", "tools/minigts/lessons", "tools/minigts/cli/verbs/lesson.py"),
]
LESSONS = ("--lessons", str(PROJECT / "docs" / "examples" / "own-lesson"))


def test_a_student_passes_it_and_the_teacher_does_the_work_again(tmp_path: Path) -> None:
    program = Program(tmp_path / "state", directory=tmp_path)
    place = tmp_path / "handed-in" / "ana"
    program.succeeds("lesson", *LESSONS, "50", "start", "--folder", str(place))
    mine = replace(program, directory=place)
    lesson = ("lesson", *LESSONS, "50")
    mine.succeeds(*lesson, "predict", "53ms")
    mine.succeeds("up", "topology.yaml")
    try:
        large, small = (
            mine.succeeds("exec", "ams", "--", "ping", "-q", "-c", "3", *size, "lju").rsplit(" = ", 1)[1].split("/")[1]
            for size in (("-s", "1000"), ())
        )
        assert float(large) == pytest.approx(53.344, abs=0.01)
        (place / "answers.yaml").write_text(f"answers: {{small: {small}ms, rate: 16.7mbit}}\n")
        before = mine.run(*lesson, "check")
        assert (before.returncode, "as they were handed out" in before.stdout) == (1, True)
        for link in ("ams-bra", "bra-lju"):
            mine.succeeds("set", link, "rate=16.7mbit")
        assert mine.succeeds(*lesson, "check").endswith("lesson 50: passed\n")
    finally:
        mine.run("down", "--all")
    graded = program.succeeds("grade", "--again", *LESSONS, str(tmp_path / "handed-in"))
    assert graded.count("passed") == 2, graded

"""A teacher's own lessons, in a directory of theirs: the sample of docs/examples, and what is wrong with others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from minigts import paths
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.lessons import folder, model
from minigts.lessons.hidden_figures import why_hidden
from minigts.lessons.verdicts import Evidence, have_passed, judge

SAMPLE = paths.project_root() / "docs" / "examples" / "own-lesson"
FILE = "50-a-packets-length.yaml"


@pytest.fixture
def lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sample, known to this process."""
    place = tmp_path / "course"
    shutil.copytree(SAMPLE, place)
    monkeypatch.setenv(paths.LESSONS, str(place))
    return place


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    monkeypatch.setenv(paths.LESSONS, "")  # which the verb sets, and pytest then undoes
    return CliRunner().invoke(app, ["lesson", *words])


def test_it_is_listed_after_minigts_own_with_the_option_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "A packet has a length" not in typed(monkeypatch).stdout
    assert "A packet has a length" in typed(monkeypatch, "--lessons", str(SAMPLE)).stdout
    told = typed(monkeypatch, "--lessons", str(SAMPLE), "50")
    assert f"begin with: minigts lesson --lessons {SAMPLE} 50 start" in told.stderr


def test_its_folder_has_a_program_that_knows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where minigts is a command."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "minigts").write_text('#!/bin/sh\necho "$MINIGTS_LESSONS $*"\n')
    (tmp_path / "bin" / "minigts").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    started = typed(monkeypatch, "--lessons", str(SAMPLE), "50", "start", "--folder", str(tmp_path / "mine"))
    assert "./minigts lesson 50 predict FIGURE" in started.stderr
    done = subprocess.run(["./minigts", "a", "b"], cwd=tmp_path / "mine", capture_output=True, text=True, check=True)
    assert done.stdout == f"{SAMPLE} a b\n"


@pytest.mark.parametrize("seed", [None, "ana", "bor", "cene", "dana", "eva"])
def test_a_right_solution_of_each_seed_passes(lessons: Path, tmp_path: Path, seed: str | None) -> None:
    numbered = model.lesson(50)
    folder.start(numbered, tmp_path / "mine", seed)
    far, slow = numbered.figures(seed)["far"], numbered.figures(seed)["slow"]
    large, small, rate = (4 * far + 33.344 / slow, 4 * far + 3.136 / slow, 33.344 / (22 - 4 * far))
    folder.predict(numbered, tmp_path / "mine", f"{large:.3f}ms")
    (tmp_path / "mine" / folder.ANSWERS).write_text(f"answers: {{small: {small:.3f}ms, rate: {rate:.2f}mbit}}\n")
    judged = judge(folder.read(tmp_path / "mine"), Evidence({"round_trip": 22.0}))
    assert have_passed(judged)
    assert judged[0].says.endswith("as it came out")
    before = judge(folder.read(tmp_path / "mine"), Evidence({"round_trip": large}))
    assert "as they were handed out" in before[-1].says


def test_its_figures_are_hidden_until_one_is_predicted(lessons: Path, tmp_path: Path) -> None:
    folder.start(model.lesson(50), tmp_path / "mine", None)
    assert why_hidden("lesson-50", tmp_path / "mine") is not None
    folder.predict(model.lesson(50), tmp_path / "mine", "1ms")
    assert why_hidden("lesson-50", tmp_path / "mine") is None


def test_graded_with_the_option(monkeypatch: pytest.MonkeyPatch, lessons: Path, tmp_path: Path) -> None:
    folder.start(model.lesson(50), tmp_path / "submissions" / "ana", "ana")
    monkeypatch.setenv(paths.LESSONS, "")
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "submissions"), "--lessons", str(lessons)])
    assert (done.exit_code, "predict first" in done.stdout) == (0, True)
    monkeypatch.setenv(paths.LESSONS, "")
    unknown = CliRunner().invoke(app, ["grade", str(tmp_path / "submissions")])
    assert "a teacher's own with --lessons DIR" in " ".join(unknown.stdout.split())


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        ("delay: $far", "delay: $near", "its topology has $near, and nothing is drawn as that"),
        ("delay: $far", "delay: 5$", "its topology has a $ without a name behind it"),
        ("name: lesson-50", "name: mine", "write `name: lesson-50`"),
        ("is: 4 * far", "is: 4 * away", "nothing is drawn, asked or measured as away"),
        ("rate: $slow}", "speed: $slow}", "speed"),
        ("title:", "titel:", "titel"),
    ],
)
def test_a_wrong_lesson_is_named_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, lessons: Path, tmp_path: Path, written: str, instead: str, says: str
) -> None:
    text = (lessons / FILE).read_text()
    (lessons / FILE).write_text(text.replace(written, instead))
    done = typed(monkeypatch, "--lessons", str(lessons), "50", "start", "--folder", str(tmp_path / "mine"))
    assert done.exit_code != 0
    assert isinstance(done.exception, InputError | SystemExit)
    assert says in f"{done.exception} {done.stderr}"
    assert not (tmp_path / "mine").exists()


def test_one_without_its_page_is_refused(lessons: Path) -> None:
    (lessons / "50-a-packets-length.md").unlink()
    with pytest.raises(InputError, match=r"its page 50-a-packets-length\.md is not beside it"):
        model.lesson(50)


def test_a_number_of_minigts_own_is_refused(lessons: Path) -> None:
    for end in (".yaml", ".md"):
        (lessons / f"50-a-packets-length{end}").rename(lessons / f"3-mine{end}")
    with pytest.raises(InputError, match=r"lesson 3 is 3-queues\.yaml already; give yours another number"):
        model.lesson(3)


def test_a_directory_without_lessons_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no lesson is there"):
        model.choose(tmp_path)

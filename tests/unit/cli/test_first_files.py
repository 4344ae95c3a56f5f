"""What `minigts init` writes, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts import overlays
from minigts.cli.app import app
from minigts.topology.read.load import load

runner = CliRunner()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ([], ["first-experiment.yaml", "first.yaml", "test_first.py"]),
        (["a-course"], ["a-course-experiment.yaml", "a-course.yaml", "test_a_course.py"]),
    ],
)
def test_it_writes_three_files_that_name_each_other(here: Path, words: list[str], written: list[str]) -> None:
    done = runner.invoke(app, ["init", *words])
    assert done.exit_code == 0
    assert sorted(path.name for path in here.iterdir()) == written
    experiment, topology, test = (here / name for name in written)
    assert load(topology, known_overlays=overlays.known_names()).name == topology.stem
    assert f"minigts test --minigts {topology.name} {test.name}" in test.read_text()
    assert f"topology: {topology.name}" in experiment.read_text()
    assert not [path for path in here.iterdir() if "NAME" in path.read_text() or "TEST_FILE" in path.read_text()]


def test_what_it_advises_needs_nothing_that_the_package_does_not_bring(here: Path) -> None:
    advised = runner.invoke(app, ["init"]).stderr
    assert "minigts test --minigts first.yaml test_first.py" in advised
    assert [line for line in advised.splitlines() if line.startswith("  ") and not line.startswith("  minigts ")] == []


def test_its_experiment_is_one() -> None:
    runner.invoke(app, ["init"])
    done = runner.invoke(app, ["run", "--dry-run", "first-experiment.yaml"])
    assert done.exit_code == 0
    assert "first: 20 samples" in done.stdout + done.stderr


@pytest.mark.parametrize("there", ["first.yaml", "first-experiment.yaml", "test_first.py"])
def test_a_file_that_is_there_is_left_alone_and_no_other_is_written(here: Path, there: str) -> None:
    (here / there).symlink_to("nowhere")
    done = runner.invoke(app, ["init"])
    assert done.exit_code == 2
    assert there in done.stderr
    assert [path.name for path in here.iterdir()] == [there]


@pytest.mark.parametrize("name", ["", "3x", "A", "../x", "a" * 41, "a b"])
def test_what_is_no_name_is_an_error(here: Path, name: str) -> None:
    done = runner.invoke(app, ["init", name])
    assert (done.exit_code, list(here.iterdir())) == (2, [])
    assert "is not a name" in done.stderr

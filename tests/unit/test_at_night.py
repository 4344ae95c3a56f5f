"""What runs for each change leaves out the tests marked `nightly`, unless their file is named, or all are wanted.

Overlays whose folder has just changed are tried for each change.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from at_night import changed, is_touched

PROJECT = Path(__file__).parents[2]
SWARM, OTHER = "leaves_nothing[swarm]", "leaves_nothing[vxlan]"
TESTS = """
import pytest
def test_by_day(): pass
@pytest.mark.nightly
def test_by_night(): pass
@pytest.mark.vagrant
def test_on_machines(): pass
@pytest.mark.touched("tools/no-such-room")
def test_of_a_room(): pass
"""


def collected(folder: Path, *words: str) -> str:
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("words", "late"),
    [((), False), (("some",), False), (("--nightly",), True), (("some/test_some.py",), True)],
)
def test_a_nightly_test_runs_at_night_or_when_its_file_is_named(
    words: tuple[str, ...], late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(PROJECT / part) for part in ("tools", "tests")))
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "test_some.py").write_text(TESTS)
    shown = collected(tmp_path, "-p", "at_night", *words)
    names = ("by_day", "by_night", "on_machines", "of_a_room")
    assert [name in shown for name in names] == [True, late, late, late]


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("tools/minigts/explore/faults.py", True),
        ("tests/live/test_explored_seeds.py", True),
        ("requirements.lock", True),
        ("requirements.lock.old", False),
        ("tools/minigts/explorer.py", False),
        ("tools/minigts", False),
    ],
)
def test_a_test_is_touched_by_what_it_is_about_and_by_its_own_file(file: str, touched: bool) -> None:
    paths = [PROJECT / "tests/live/test_explored_seeds.py", "tools/minigts/explore", "requirements.lock"]
    assert is_touched(paths, ["README.md", file]) == touched
    assert not is_touched(paths, [])


def test_the_projects_own_tests_go_by_it() -> None:
    other = "vxlan" in changed(PROJECT / "provision" / "overlays")
    shown = collected(PROJECT, "--all-tests", "tests/live", "--ignore-glob=*/live/test_[!o]*")
    assert (SWARM in shown, OTHER in shown) == (True, other)


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """Folders in a repository: `old` and a file beside it committed five days before HEAD, `late` two hours."""
    folder = tmp_path / "overlays"
    folder.mkdir()
    git(folder, "init", "-q")
    for name, hours in {"old": 120, "late": 2, "mesh": 0}.items():
        (folder / name).mkdir()
        (folder / name / "overlay.sh").write_text(f"{name}\n")
        (folder / f"{name}.sh").write_text(f"{name}\n")
        git(folder, "add", ".")
        date = (datetime(2026, 11, 27, tzinfo=UTC) - timedelta(hours=hours)).isoformat()
        git(folder, "commit", "-qm", name, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)
    return folder


def git(folder: Path, *words: str, **environment: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *settings, *words], check=True, env={**os.environ, **environment})


def test_an_overlay_that_the_latest_commits_changed_is_tried_for_each_change(catalogue: Path) -> None:
    assert changed(catalogue) == {"late", "late.sh", "mesh", "mesh.sh"}


def test_so_is_one_that_is_changed_or_new_in_the_working_tree(catalogue: Path) -> None:
    (catalogue / "old" / "overlay.sh").write_text("changed\n")
    (catalogue / "new").mkdir()
    (catalogue / "new" / "overlay.yaml").write_text("description: new\n")
    assert changed(catalogue) == {"old", "late", "late.sh", "mesh", "mesh.sh", "new"}


def test_without_a_repository_none_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert changed(tmp_path) == set()

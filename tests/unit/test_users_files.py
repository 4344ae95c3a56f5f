"""What minigts writes for its user is as the user's umask says; what it writes for itself is its owner's alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic

from minigts import paths
from minigts.report import render

PACKAGE = Path(paths.__file__).parents[1]


def modes(place: Path) -> set[str]:
    return {
        f"{'folder' if path.is_dir() else 'file'} {path.stat().st_mode & 0o777:03o}"
        for path in (place, *place.rglob("*"))
        if not path.name.startswith(".")
    }


def program(place: Path, umask: int, *words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != paths.UMASK}
    subprocess.run(
        [sys.executable, "-P", "-m", "minigts", *words],
        cwd=place,
        env=environment | {"PYTHONPATH": str(PACKAGE)},
        umask=umask,
        check=True,
        capture_output=True,
        timeout=120,
    )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "work").mkdir(mode=0o755)
    yield tmp_path / "work"


@pytest.mark.parametrize(("umask", "found"), [(0o022, {"folder 755", "file 644"}), (0o027, {"folder 750", "file 640"})])
def test_first_files_and_a_lessons_folder(place: Path, umask: int, found: set[str]) -> None:
    place.chmod(0o777 & ~umask)
    program(place, umask, "init")
    program(place, umask, "lesson", "1", "start")
    program(place / "lesson-1", umask, "lesson", "1", "predict", "50ms")
    launcher = place / "lesson-1" / "minigts"  # where minigts is no command of the machine
    assert not launcher.exists() or launcher.stat().st_mode & 0o777 == 0o755 & ~umask
    launcher.unlink(missing_ok=True)
    assert modes(place) == found


def test_results_and_their_figures(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the command line does it: its own umask is 077, and the user's is kept in the environment."""
    run = synthetic.write(place / "run", synthetic.KINDS[0], repetitions=1)
    monkeypatch.setenv(paths.UMASK, "022")
    before = os.umask(0o077)
    try:
        render(run)
        paths.write_whole(place.parent / "record", "ours")
    finally:
        os.umask(before)
    assert modes(run) == {"folder 755", "file 644"}
    assert (place.parent / "record").stat().st_mode & 0o777 == 0o600


def test_without_the_command_line_it_is_the_processs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(paths.UMASK, raising=False)
    before = os.umask(0o037)
    try:
        assert paths.users_umask() == 0o037
        monkeypatch.setenv(paths.UMASK, "no number")
        assert paths.users_umask() == 0o037
    finally:
        os.umask(before)

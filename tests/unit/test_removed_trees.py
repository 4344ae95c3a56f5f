"""What a stranger has left in a directory is removed with it: any mode, any depth, links, and nothing behind a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from isolated import run_isolated

from minigts import paths


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "to the folder").symlink_to(kept)
    (tree / "a" / "b" / "to the file").symlink_to(kept / "file")
    (tree / "a" / "b" / "to nothing").symlink_to(tmp_path / "absent")
    os.mkfifo(tree / "a" / "pipe")
    paths.remove_tree(tree)
    assert not tree.exists()
    assert (kept / "file").read_text() == "stays"


def test_a_link_in_its_place_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    paths.remove_tree(tmp_path / "link")
    assert (tmp_path / "kept").is_dir() and not (tmp_path / "link").is_symlink()


def test_what_is_not_there_needs_no_removal(tmp_path: Path) -> None:
    paths.remove_tree(tmp_path / "absent")


def test_a_tree_deeper_than_any_name_or_stack(tmp_path: Path) -> None:
    depth = 5000
    top = tmp_path / "tree"
    top.mkdir()
    held = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 100, dir_fd=held)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=held))
        within = os.open("d" * 100, os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = within
    os.close(held)
    open_before = len([*Path("/proc/self/fd").iterdir()])
    paths.remove_tree(top)
    assert not top.exists()
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before


MODES = """
import os, sys
from pathlib import Path
from minigts import paths

os.chdir("/tmp")
for top_mode in (0o000, 0o300, 0o500, 0o700):
    for mode in (0o000, 0o100, 0o200, 0o300, 0o400, 0o500):
        inner = Path("tree/a/b/c")
        inner.mkdir(parents=True)
        (inner / "file").write_text("x")
        (inner.parent / "beside").write_text("x")
        for place in (inner, inner.parent, inner.parent.parent):
            place.chmod(mode)
        Path("tree").chmod(top_mode)
        paths.remove_tree(Path("tree"))
        assert not os.path.lexists("tree"), (top_mode, mode)
print(os.getuid())
"""


def test_a_plain_user_removes_directories_of_any_mode() -> None:
    done = run_isolated(MODES, as_plain_user=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "1000\n")


def test_what_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").touch()

    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError("not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError):
        paths.remove_tree(tmp_path / "tree")

"""Whether somebody holds the lock of a file."""

from __future__ import annotations

import fcntl
from pathlib import Path

from minigts.machine.locks import is_locked


def test_a_file_is_locked_for_as_long_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as held:
        assert not is_locked(path)
        fcntl.flock(held, fcntl.LOCK_EX)
        assert is_locked(path)
        assert is_locked(path)
    assert not is_locked(path)


def test_what_is_missing_or_no_file_of_its_own_is_locked_by_nobody(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "lock"
    link.symlink_to(path)
    assert not is_locked(path)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not is_locked(link)

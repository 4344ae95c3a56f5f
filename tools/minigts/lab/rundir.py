"""Names of labs, their run directories, and the lock of one.

A run directory is `<state root>/labs/<name>`; it holds plan.json and lab.json beside what the provider puts there.
Names are only names: `checked_name` is the one place where they are judged, and `require_own` the one that says what
may be removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO

from minigts import paths
from minigts.errors import InputError
from minigts.lab.lab import Lab
from minigts.lab.record import KEPT, RECORD
from minigts.machine import locks

MARKER = "minigts-lab"
"""The first file that is made in a run directory: a directory without it and without lab.json is no lab."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)


def checked_name(name: str) -> str:
    """`name`, if a lab can have it. Raises InputError otherwise."""
    if not _NAME.fullmatch(name):
        shown = ascii(name) if len(name) <= 80 else f"{name[:80]!a}…"
        raise InputError(
            f"{shown} is no name of a lab: write at most 64 letters, digits, hyphens, underscores and dots, as in "
            f"pair-2, with a letter, a digit or an underscore first"
        )
    return name


def lab_named(name: str) -> Lab:
    """The lab of that name, whether it exists or not. Raises InputError for an invalid name."""
    return Lab(paths.labs_root() / checked_name(name))


def all_labs() -> list[Lab]:
    """Every lab of this user that has a run directory, up or not, in the order of names."""
    directory = paths.labs_root()
    rundirs = sorted(directory.iterdir()) if directory.is_dir() else []
    return [Lab(path) for path in rundirs if _NAME.fullmatch(path.name) and why_foreign(path) is None]


def open_lab(name: str | None = None, *, also_kept: bool = False) -> Lab:
    """The lab called `name`; without a name the only lab that is not kept, or with `also_kept` the only kept one.
    Raises InputError, which lists the labs."""
    if name is not None:
        lab = lab_named(name)
        require_own(lab.rundir)
    labs = {lab.name: lab for lab in all_labs()}
    if name is not None and name in labs:
        if not also_kept and labs[name].read_state() == KEPT:
            raise InputError(_is_kept(name))
        return labs[name]
    if not labs:
        raise InputError("no lab is up; bring one up with: minigts up topologies/chain6.yaml")
    known = ", ".join(labs)
    if name is None:
        # A kept lab is chosen only where no other exists.
        states = {name: lab.read_state() for name, lab in labs.items()}
        chosen = [lab for name, lab in labs.items() if states[name] != KEPT] or list(labs.values())
        is_kept = states[chosen[0].name] == KEPT
        if len(chosen) > 1:
            how = KEPT if is_kept else "up"
            raise InputError(
                f"several labs are {how} ({', '.join(each.name for each in chosen)}): say which with --lab"
            )
        if not also_kept and is_kept:
            raise InputError(f"no lab is up; {_is_kept(chosen[0].name)}")
        return chosen[0]
    close = get_close_matches(name, labs, 1)
    raise InputError(f"no lab {name!r}{f'; did you mean {close[0]!r}?' if close else ''} Labs are: {known}")


def _is_kept(name: str) -> str:
    return f"lab {name} is kept, and not up: bring it up with minigts up and its topology"


def why_foreign(rundir: Path) -> str | None:
    """What `rundir` is instead of a lab, in words; None when it is a lab, or does not exist.

    An empty directory is a lab whose making was interrupted at once.
    """
    try:
        mode = rundir.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(mode):
        return f"a symbolic link to {ascii(str(rundir.readlink()))[1:-1]}"
    if not stat.S_ISDIR(mode):
        return "no directory"
    if any(os.path.lexists(rundir / name) for name in (MARKER, RECORD)):
        return None
    with suppress(FileNotFoundError):
        if any(rundir.iterdir()):
            return f"a directory without {RECORD}"
    return None


def require_own(rundir: Path) -> None:
    """Raises InputError unless `rundir` lies in the labs' directory, and is a lab of minigts or does not exist."""
    name = checked_name(rundir.name)
    if rundir.parent != paths.labs_root():
        raise InputError(f"{rundir} does not lie in {paths.labs_root()}: it is left alone")
    foreign = why_foreign(rundir)
    if foreign is not None:
        raise InputError(
            f"{rundir} is {foreign}, and no lab of minigts: it is left alone; move it away, or choose another name "
            f"than {name}"
        )


@contextmanager
def exclusive(rundir: Path) -> Iterator[None]:
    """Hold the lock of a lab: one command at a time changes it; others wait.

    The lock ends with the process that holds it, and its file with the lab. It cannot be nested.
    """
    path = _lock_of(rundir)
    with _locked(path):
        try:
            yield
        finally:
            if not os.path.lexists(rundir):
                # Only the holder removes the file: a process that waits for it notices, and makes a new one.
                path.unlink(missing_ok=True)


def is_locked(rundir: Path) -> bool:
    """Whether a command, or another thread of this process, holds the lock of a lab now."""
    return locks.is_locked(_lock_of(rundir))


def _lock_of(rundir: Path) -> Path:
    return rundir.parent / f".{rundir.name}.lock"


def _locked(path: Path) -> IO[bytes]:
    """The lock's open file, once this process holds it. If the file is replaced meanwhile, the new one is locked."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b")
        except FileNotFoundError:  # its directory was removed in between
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still(path, lock):
                return lock
        except BaseException:
            lock.close()
            raise
        lock.close()


def _is_still(path: Path, lock: IO[bytes]) -> bool:
    try:
        named = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(named, os.fstat(lock.fileno()))

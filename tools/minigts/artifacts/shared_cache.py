"""The cache that all users of a machine share: whoever sets the machine up fills it, and minigts only reads it for the
others, who build into their own caches what it lacks."""

from __future__ import annotations

import compileall
import contextlib
import os
import stat
from pathlib import Path

from minigts import paths
from minigts.artifacts import digests
from minigts.errors import EnvironmentLacks, InputError
from minigts.machine.progress import Progress

FOR_ALL, FOR_ALL_TO_RUN = 0o444, 0o111


def choose() -> None:
    """Let this process build into the shared cache, which is made if it is not there. Raises InputError where the user
    has none, and EnvironmentLacks where it cannot be written to."""
    place = paths.shared_place()
    if place is None:
        raise InputError(
            f"--shared: {paths.SHARED} is set and empty, so that there is no shared cache; name a directory"
        )
    try:
        paths.users_folder(place, exist_ok=True)
        place.chmod(stat.S_IMODE(place.stat().st_mode) | FOR_ALL | FOR_ALL_TO_RUN)
    except OSError as error:
        raise EnvironmentLacks(
            f"--shared: {place} cannot be written to: {error.strerror}; run this as root, or name a directory of yours "
            f"in {paths.SHARED}, for you and for all who are to use it"
        ) from None
    os.environ["MINIGTS_CACHE"] = str(place)


def open_to_all(say: Progress) -> None:
    """Let everybody read what is in the cache, but for builds that run, with the sums of the parts, which nobody else
    then has to compute. Raises EnvironmentLacks for what is somebody else's."""
    for directory in (each for store in digests.PARTS for each in (paths.cache_root() / store).glob("[!.]*")):
        if directory.is_dir() and not _is_unfinished(directory):
            say(f"computing the digest of {directory.parent.name}/{directory.name}")
            digests.proof(directory)
    say("letting all users read it")
    try:
        _open(paths.cache_root())
        if not paths.is_installed():
            _compile_program()
    except OSError as error:
        raise EnvironmentLacks(f"--shared: {error.filename} cannot be opened to all: {error.strerror}") from None


def _compile_program() -> None:
    """Compile the checkout's modules, which others may not write beside them, and would compile at each start. Where
    this user may not either, nothing is done."""
    package = paths.import_root() / "minigts"
    if not os.access(package, os.W_OK):
        return
    compileall.compile_dir(package, quiet=2)
    for each in package.rglob("__pycache__"):
        with contextlib.suppress(PermissionError):  # somebody else's
            _open(each)


def _open(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode) and not _is_unfinished(path):
        path.chmod(stat.S_IMODE(mode) | FOR_ALL | FOR_ALL_TO_RUN)
        for each in path.iterdir():
            _open(each)
    elif stat.S_ISREG(mode):
        path.chmod(stat.S_IMODE(mode) | FOR_ALL | (FOR_ALL_TO_RUN if mode & stat.S_IXUSR else 0))


def _is_unfinished(path: Path) -> bool:
    return path.name.startswith(("building-", "fetching-", "taking-"))

"""Programs that an overlay needs and no package holds: built on this machine once, kept in the cache by their content.

An overlay's folder may have a folder `build` with a script `build.sh OUTPUT`, which leaves there what every host gets.
The products lie in `<cache root>/programs/<hash of that folder>`; they are built beside that place and renamed when
they are complete.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from minigts import paths
from minigts.errors import CommandFailed, MinigtsError
from minigts.machine import shell

BUILD_TIMEOUT_S = 1800.0


def ensure(recipe: Path, progress: Callable[[str], None]) -> Path:
    """The directory with what the folder `recipe` makes, built now if it must be.

    Raises MinigtsError when it cannot be built; then nothing of it is kept.
    """
    programs = paths.cache_root() / "programs"
    ready = programs / key(recipe)
    if ready.is_dir():
        return ready
    programs.mkdir(parents=True, exist_ok=True)
    with (programs / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in programs.glob("building-*"):  # of a crash: nobody else is building
            shutil.rmtree(left)
        if not ready.is_dir():
            progress(f"building what {recipe.parent.name} needs; once, some minutes")
            _build(recipe, ready)
    return ready


def key(recipe: Path, parts: Sequence[str] = ()) -> str:
    """A hash of all files of a recipe, or of these files and directories of it."""
    tops = [recipe / part for part in parts] or [recipe]
    files = sorted(path for top in tops for path in (top, *top.rglob("*")) if path.is_file())
    return paths.content_key((str(path.relative_to(recipe)), path) for path in files)


def _build(recipe: Path, ready: Path) -> None:
    place = ready.with_name(f"building-{ready.name}")
    place.mkdir()
    try:
        shell.run([str(recipe / "build.sh"), str(place)], timeout_s=BUILD_TIMEOUT_S, umask=shell.FOR_OTHERS)
    except CommandFailed as error:
        raise MinigtsError(f"{recipe.parent.name}: its programs could not be built\n{error}") from error
    else:
        place.rename(ready)
    finally:
        shutil.rmtree(place, ignore_errors=True)

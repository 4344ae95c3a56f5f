"""Programs that an overlay needs and no package contains: built once on this machine, and kept in the cache.

An overlay's folder may have a folder `build` with a script `build.sh OUTPUT`, which writes to the directory OUTPUT what
every host gets. The programs are in `<cache root>/programs/<hash of the folder build>`; they are built beside that
directory and moved there when complete. Each recipe has a lock of its own: nobody waits for another overlay's programs,
some of which take ten minutes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from minigts import paths
from minigts.artifacts import builders
from minigts.errors import CommandFailed, MinigtsError
from minigts.machine import shell, times_seen
from minigts.machine.progress import Progress

BUILD_TIMEOUT_S = 1800.0


def store() -> Path:
    """The directory that has the programs of each recipe, by its key."""
    return paths.cache_root() / "programs"


def ensure(recipe: Path, progress: Progress) -> Path:
    """The directory with the programs of the recipe in folder `recipe`, built now if necessary.

    Raises MinigtsError when they cannot be built; then nothing is kept.
    """
    ready = paths.cache_entry(store() / key(recipe))
    if ready.is_dir():
        return ready
    ready.parent.mkdir(parents=True, exist_ok=True)
    name = product_name(recipe)
    with builders.only_builder(builders.lock_of(ready), name, progress):
        for left in builders.abandoned_directories(ready):
            shutil.rmtree(left)
        if not ready.is_dir():
            progress(f"building the {name}; once, some minutes")
            began = time.monotonic()
            _build(recipe, ready)
            times_seen.add(builders.BUILDING, name, time.monotonic() - began)
    return ready


def missing_build(recipe: Path) -> str:
    """What `ensure` would build, by its name in messages; empty where it is there."""
    return "" if paths.cache_entry(store() / key(recipe)).is_dir() else product_name(recipe)


def product_name(recipe: Path) -> str:
    """What a recipe's programs are called in messages."""
    return f"programs of {recipe.parent.name}"


def key(recipe: Path, parts: Sequence[str] = ()) -> str:
    """A hash of all files of a recipe, or only of those in `parts`, its files and directories."""
    tops = [recipe / part for part in parts] or [recipe]
    files = sorted(path for top in tops for path in (top, *top.rglob("*")) if path.is_file())
    return paths.content_key((str(path.relative_to(recipe)), path) for path in files)


def _build(recipe: Path, ready: Path) -> None:
    place = ready.with_name(f"building-{ready.name}")
    place.mkdir()
    try:
        argv = [str(recipe / "build.sh"), str(place)]
        shell.run(argv, timeout_s=BUILD_TIMEOUT_S, umask=shell.FOR_OTHERS, cwd=shell.ANYWHERE)
    except CommandFailed as error:
        raise MinigtsError(f"{recipe.parent.name}: its programs could not be built\n{error}") from error
    else:
        place.rename(ready)
    finally:
        shutil.rmtree(place, ignore_errors=True)

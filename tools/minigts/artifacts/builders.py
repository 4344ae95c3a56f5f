"""One build at a time in a place of the cache, and what killed builds have left there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from minigts.machine.locks import hold_lock, is_locked
from minigts.machine.progress import Progress

BUILDING = "building"
"""The kind of work of a build in `times_seen`; its key is the product's name."""
PARTS = "parts"
"""The key of the build of image, kernel and clock together."""


def only_builder(
    lock: Path, name: str, progress: Progress, broken_off: threading.Event | None = None
) -> AbstractContextManager[None]:
    """A context for one build at a time; its lock ends with the process that holds it. Who waits for another says so.
    Raises BrokenOff when another thread sets `broken_off` meanwhile."""
    return hold_lock(lock, lambda: progress(f"waiting for another minigts to finish building the {name}"), broken_off)


def lock_of(ready: Path) -> Path:
    """The lock of whoever builds that directory, beside it."""
    return ready.with_name(f"{ready.name}.lock")


def abandoned_directories(ready: Path) -> Iterator[Path]:
    """Directories that no build works in. Asked by whoever holds the lock of `ready`."""
    for place in ready.parent.glob("building-*"):
        name = place.name.removeprefix("building-")
        if name == ready.name or not is_locked(lock_of(ready.with_name(name))):
            yield place

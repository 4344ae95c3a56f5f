"""The full kernel: what Debian's own lacks, compiled once by provision/kernel and kept in the cache by its content.

Debian's comes with the image and is what hosts run until somebody builds this one; from then on every lab that is
brought up has it. Its name is a hash of the recipe alone, so a change of the image leaves it as it is. It is built
beside its place and renamed when it is complete.
"""

from __future__ import annotations

import fcntl
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import built
from minigts.errors import CommandFailed, EnvironmentLacks
from minigts.machine import shell

BUILD_TIMEOUT_S = 3600.0
WORK_DIRECTORY = Path("/var/tmp")
WORK_MB = 3500
"""The compiler, the kernel's source and its objects; with what may come to them."""
OBJECTS = 1300
"""How many the kernel has, more or less: for the progress that is shown."""
STEPS = 10
LOG_LINES = 8


@dataclass(frozen=True)
class FullKernel:
    """A directory with `linux`, which needs no library, `modules/` for /usr/lib/modules, and `version`."""

    directory: Path

    @property
    def modules(self) -> Path:
        """One directory, named for the kernel's release: with it modprobe knows what is built in."""
        return next((self.directory / "modules").iterdir())

    @property
    def version(self) -> str:
        """Of the Debian package with the source."""
        return (self.directory / "version").read_text().strip()


def present() -> FullKernel | None:
    """The kernel of this recipe, if it has been built."""
    directory = _kernels() / _key()
    return FullKernel(directory) if directory.is_dir() else None


def ensure(progress: Callable[[str], None]) -> FullKernel:
    """The kernel of this recipe, built now if it must be. Raises EnvironmentLacks."""
    _kernels().mkdir(parents=True, exist_ok=True)
    with (_kernels() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build at a time; it goes with the process that holds it
        return present() or _build(progress)


def remove() -> None:
    """Remove the kernel of this recipe, if it is there."""
    shutil.rmtree(_kernels() / _key(), ignore_errors=True)


def _kernels() -> Path:
    return paths.cache_root() / "kernels"


def _recipe() -> Path:
    return paths.project_root() / "provision" / "kernel"


def _key() -> str:
    return built.key(_recipe())


def _build(progress: Callable[[str], None]) -> FullKernel:
    for left in _kernels().glob("building-*"):
        shutil.rmtree(left)
    free_mb = shutil.disk_usage(WORK_DIRECTORY).free >> 20
    if free_mb < WORK_MB:
        raise EnvironmentLacks(f"building the kernel takes {WORK_MB} MB in {WORK_DIRECTORY}; {free_mb} MB are free")
    place = _kernels() / f"building-{_key()}"
    place.mkdir()
    try:
        progress("building the hosts' full kernel from Debian's source; once, five to ten minutes on two processors")
        with _watched(place / "log", progress):
            argv = [str(_recipe() / "build.sh"), str(place)]
            shell.run_group(argv, timeout_s=BUILD_TIMEOUT_S, umask=shell.FOR_OTHERS)
        place.rename(_kernels() / _key())
    except CommandFailed as error:
        kept = _kernels() / "failed-build.log"
        shutil.copyfile(place / "log", kept)
        end = "".join(f"\n    {line}" for line in error.stdout.splitlines()[-LOG_LINES:])
        raise EnvironmentLacks(
            f"the full kernel could not be built; the end of its log is{end}\nThe log: {kept}"
        ) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return FullKernel(_kernels() / _key())


@contextmanager
def _watched(log: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile, say every tenth of the way how many objects the log has."""
    ended = threading.Event()

    def watch() -> None:
        step = 0
        while not ended.wait(1.0):
            objects = log.read_text(errors="replace").count("\n  CC ") if log.exists() else 0
            if objects * STEPS // OBJECTS > step:
                step = objects * STEPS // OBJECTS
                progress(f"compiling the full kernel: {objects} of some {OBJECTS} objects")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()

"""What provision compiles here: once, in a Debian root of its own, kept in the cache by its recipe's content.

A recipe is a folder with a script `build.sh OUTPUT`, which leaves in OUTPUT what it makes and a file `log`. It works
beside the product's place, which is renamed when it is complete, so an interrupted build leaves nothing that could be
taken for one.
"""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from minigts.artifacts import built
from minigts.artifacts.causes import cause, sources
from minigts.errors import BrokenOff, CommandFailed, EnvironmentLacks
from minigts.machine import shell

BUILD_TIMEOUT_S = 14400.0
WORK_DIRECTORY = Path("/var/tmp")
"""Where recipes unpack."""
REPORTS = 10
"""How often, at most, a build says how far it is."""
LOOK_EVERY_S = 0.2
FAILED_LOG = "failed-build.log"


@dataclass(frozen=True)
class Product:
    """One thing that is compiled, and how it is spoken of."""

    name: str
    """Such as "full kernel"."""
    folder: Path
    """The recipe's."""
    store: Path
    """A directory of the cache, for this product alone; in it each content has one of its own."""
    duration: str
    """How long it takes, for people."""
    work_mb: int
    """Room that the build takes in WORK_DIRECTORY, with what may come to it."""
    step: str
    """How a line of the log begins that says what is compiled next."""
    steps: int
    """How many of those there are, more or less."""
    parts: tuple[str, ...] = ()
    """The files and directories of the folder, and `../` files, that it is made from; empty: all of the folder."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What more the recipe's environment has, which makes no other recipe of it."""

    @property
    def key(self) -> str:
        """The hash of the recipe, which what it makes is named for."""
        return built.key(self.folder, self.parts)

    def present(self) -> Path | None:
        """The directory with what this recipe makes, if it has been built."""
        ready = self._ready()
        return ready if ready.is_dir() else None

    def ensure(self, progress: Callable[[str], None], broken_off: threading.Event | None = None) -> Path:
        """The directory with what this recipe makes, built now if it must be.

        Raises EnvironmentLacks, and BrokenOff once another thread has set `broken_off`; then nothing of it is left.
        """
        ready = self.present()
        if ready is not None:  # whoever has it need not wait for who builds another
            return ready
        self.store.mkdir(parents=True, exist_ok=True)
        with self._only_builder(progress, broken_off):
            return self.present() or self._build(progress, broken_off)

    def remove(self) -> None:
        """Remove what this recipe has made, if it is there."""
        shutil.rmtree(self._ready(), ignore_errors=True)

    def lack_of_room(self) -> str:
        """What to say when this machine has too little for the build; else empty."""
        free_mb = shutil.disk_usage(WORK_DIRECTORY).free >> 20
        if free_mb >= self.work_mb:
            return ""
        return f"building the {self.name} takes {self.work_mb} MB in {WORK_DIRECTORY}; {free_mb} MB are free"

    def _ready(self) -> Path:
        return self.store / self.key

    def _build(self, progress: Callable[[str], None], broken_off: threading.Event | None) -> Path:
        for left in self.store.glob("building-*"):
            shutil.rmtree(left)
        lacking = self.lack_of_room()
        if lacking:
            raise EnvironmentLacks(lacking)
        ready = self._ready()
        place = ready.with_name(f"building-{ready.name}")
        place.mkdir()
        try:
            progress(f"building the {self.name}; once, {self.duration}")
            with self._watched(place / "log", progress):
                shell.run_group(
                    [str(self.folder / "build.sh"), str(place)],
                    timeout_s=BUILD_TIMEOUT_S,
                    env=self.settings,
                    umask=shell.FOR_OTHERS,
                    broken_off=broken_off,
                )
            place.rename(ready)
            (self.store / FAILED_LOG).unlink(missing_ok=True)
        except CommandFailed as error:
            raise EnvironmentLacks(self._explain(error, place / "log")) from error
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return ready

    def _explain(self, error: CommandFailed, log: Path) -> str:
        """The cause as the recipe said it. The whole log is kept for who wants more."""
        kept = self.store / FAILED_LOG
        kept.write_bytes(log.read_bytes() if log.exists() else error.stdout.encode())
        why = cause(error.stdout, f"{self.work_mb} MB in {WORK_DIRECTORY}")
        return f"the {self.name} could not be built: {why}\nThe log: {kept}"

    @contextmanager
    def _only_builder(self, progress: Callable[[str], None], broken_off: threading.Event | None) -> Iterator[None]:
        """One build at a time; the lock goes with the process that holds it."""
        with (self.store / "lock").open("w") as lock:
            waits = False
            while not _is_ours(lock):
                if not waits:
                    progress(f"waiting for another minigts to finish building the {self.name}")
                waits = True
                if broken_off is not None and broken_off.is_set():
                    raise BrokenOff("broken off")
                time.sleep(LOOK_EVERY_S)
            yield

    @contextmanager
    def _watched(self, log: Path, progress: Callable[[str], None]) -> Iterator[None]:
        """Meanwhile, say what is taken from where, and every tenth of the way how far the log has come."""
        ended = threading.Event()

        def watch() -> None:
            reported, told = 0, 0
            while not ended.wait(1.0):
                text = log.read_text(errors="replace") if log.exists() else ""
                taken = sources(text)
                for line in taken[told:]:
                    progress(line)
                told = len(taken)
                steps = text.count(f"\n{self.step}")
                if steps * REPORTS // self.steps > reported:
                    reported = steps * REPORTS // self.steps
                    progress(f"compiling the {self.name}: {steps} of some {self.steps} parts")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _is_ours(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

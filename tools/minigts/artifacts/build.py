"""Products that are compiled once from a recipe in provision, in a Debian root, and kept in the cache by its content.

A recipe is a folder with a script `build.sh OUTPUT`, which writes its product and a file `log` to the directory OUTPUT.
OUTPUT is beside the product's final directory and is renamed when complete, so that an interrupted build is never taken
for a product.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from minigts import paths
from minigts.artifacts import builders, overlay_programs
from minigts.artifacts.build_errors import cause, sources
from minigts.errors import BrokenOff, CommandFailed, EnvironmentLacks
from minigts.foreign import content
from minigts.machine import proc, shell, times_seen
from minigts.machine.progress import Progress

BUILD_TIMEOUT_S = 14400.0
WORK_DIRECTORY = Path("/var/tmp")
"""The directory in which recipes unpack and compile."""
REPORTS = 10
"""How many reports of progress there are in one build, one for each tenth of its steps."""
REPORT_EVERY_S = 300.0
"""After so long there is one more, since an estimate that is shown for long is an old one."""
LOOK_EVERY_S, RECENT = 20.0, 10
"""How often the processor time of a build is read, and how many of the latest readings say how fast it gets on."""
FAILED_LOG = "failed-build.log"


@dataclass(frozen=True)
class Product:
    """A product, its recipe, and what to say about its build."""

    name: str
    """The product's name in messages, such as "full kernel"."""
    folder: Path
    """The recipe's folder."""
    store: Path
    """The product's directory in the cache, with a subdirectory for each key."""
    duration: str
    """How long the build takes, in words."""
    work_mb: int
    """MB that the build needs in WORK_DIRECTORY, with a reserve."""
    step: str
    """The prefix of a line of the log for each compiled part."""
    steps: int
    """About how many such lines there are."""
    parts: tuple[str, ...] = ()
    """The recipe's files and directories in the folder, and `../` files; empty means all of the folder."""
    shares_store: bool = False
    """Whether the store holds products of other recipes, too: each then has a lock of its own."""
    processor_s: float = 0.0
    """How much processor time the build takes; 0 where its steps alone say how far it is."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables of the recipe, which do not change its key."""

    @property
    def key(self) -> str:
        """The hash of the recipe, which names the product's directory."""
        return overlay_programs.key(self.folder, self.parts)

    def present(self) -> Path | None:
        """The product's directory; None if this recipe is not built."""
        ready = paths.cache_entry(self._ready())
        return ready if ready.is_dir() else None

    def ensure(
        self,
        progress: Progress,
        broken_off: threading.Event | None = None,
        behind: threading.Event | None = None,
    ) -> Path:
        """The product's directory, built now if necessary; while `behind` is set, other programs go first.

        Raises EnvironmentLacks when it cannot be built, and BrokenOff once another thread has set `broken_off`; then
        nothing is left of the build.
        """
        ready = self.present()
        if ready is not None:  # without the lock, which another build may hold
            return ready
        self.store.mkdir(parents=True, exist_ok=True)
        lock = builders.lock_of(self._ready()) if self.shares_store else self.store / "lock"
        with builders.only_builder(lock, self.name, progress, broken_off):
            return self.present() or self._build(progress, broken_off, behind)

    def remove(self) -> None:
        """Remove the product of this recipe from the user's own cache, if it is built there."""
        shutil.rmtree(self._ready(), ignore_errors=True)

    def lack_of_room(self) -> str:
        """The message when this machine has too little room for the build; empty if it has enough."""
        free_mb = shutil.disk_usage(WORK_DIRECTORY).free >> 20
        if free_mb >= self.work_mb:
            return ""
        return f"building the {self.name} takes {self.work_mb} MB in {WORK_DIRECTORY}; {free_mb} MB are free"

    def _ready(self) -> Path:
        return self.store / self.key

    def _build(self, progress: Progress, broken_off: threading.Event | None, behind: threading.Event | None) -> Path:
        for left in builders.abandoned_directories(self._ready()):
            shutil.rmtree(left)
        lacking = self.lack_of_room()
        if lacking:
            raise EnvironmentLacks(lacking)
        ready = self._ready()
        place = ready.with_name(f"building-{ready.name}")
        place.mkdir()
        began = time.monotonic()
        try:
            progress(f"building the {self.name}; once, {self.duration}")
            pace = Pace(self.processor_s)
            with report_progress(place / "log", progress, self.name, self.step, self.steps, pace):
                shell.run_group(
                    [str(self.folder / "build.sh"), str(place)],
                    timeout_s=BUILD_TIMEOUT_S,
                    env=self.settings,
                    umask=shell.FOR_OTHERS,
                    broken_off=broken_off,
                    behind=behind,
                    begun=pace.processes.append,
                )
            place.rename(ready)
            times_seen.add(builders.BUILDING, self.name, time.monotonic() - began)
            (self.store / FAILED_LOG).unlink(missing_ok=True)
        except CommandFailed as error:
            raise EnvironmentLacks(self._explain(error, place / "log")) from error
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return ready

    def _explain(self, error: CommandFailed, log: Path) -> str:
        """The message with the cause of a failed build. The whole log is kept."""
        kept = self.store / FAILED_LOG
        kept.write_bytes(log.read_bytes() if log.exists() else content(error.out).encode())
        why = cause(error.out, f"{self.work_mb} MB in {WORK_DIRECTORY}")
        return f"the {self.name} could not be built: {why}\nThe log: {kept}"


class Pace:
    """How fast a build gets on: by the processor time that it has had lately, where it is known how much the whole
    takes, which other work on the machine does not change; otherwise by its steps."""

    def __init__(self, whole_s: float = 0.0) -> None:
        self.processes: list[int] = []
        """The build's first process."""
        self._whole_s = whole_s
        self._begun_s: float | None = None
        self._readings = deque[tuple[float, float]](maxlen=RECENT)

    def look(self, now_s: float, done: int) -> None:
        """Note the time and, every now and then, the processor time; a build begins with its first step."""
        if self._begun_s is None or not done:
            self._begun_s = now_s
        if self._whole_s and (not self._readings or now_s - self._readings[-1][0] >= LOOK_EVERY_S):
            self._readings.append((now_s, sum(map(proc.used_s, proc.family(self.processes)))))

    def time_left(self, now_s: float, done: int, of: int) -> str:
        """`about 4 min`, or `less than a minute`, until the end, after so many steps of some `of`."""
        left_s = seconds_left(self._readings, self._whole_s, done / of)
        if left_s is None:
            return time_left(now_s - (now_s if self._begun_s is None else self._begun_s), done, of)
        return minutes_in_words(left_s)


def seconds_left(readings: Sequence[tuple[float, float]], whole_s: float, share: float) -> float | None:
    """Until a build ends that takes `whole_s` of processor time, or as much more as the `share` of its steps that are
    done says. `readings` are times and the processor time that it had had by then. None where they say nothing yet."""
    if len(readings) < 2 or (had_s := readings[-1][1]) <= readings[0][1]:
        return None
    pace = (had_s - readings[0][1]) / (readings[-1][0] - readings[0][0])
    return max(0.0, max(whole_s, had_s / share) - had_s) / pace


@contextmanager
def report_progress(
    log: Path, progress: Progress, name: str, step: str, steps: int, pace: Pace | None = None
) -> Iterator[None]:
    """A context during which the log's sources, and each tenth of its steps with the time that is left, are reported.
    A step is a line that begins with `step`, of some `steps` of what is called `name`."""
    ended, pace = threading.Event(), pace or Pace()

    def watch() -> None:
        reported, told, reported_s = 0, 0, time.monotonic()
        while not ended.wait(1.0):
            text = log.read_text(errors="replace") if log.exists() else ""
            taken = sources(text)
            for line in taken[told:]:
                progress(line)
            told = len(taken)
            done, now_s = text.count(f"\n{step}"), time.monotonic()
            pace.look(now_s, done)
            if done * REPORTS // steps > reported or (reported and now_s - reported_s >= REPORT_EVERY_S):
                reported, reported_s = done * REPORTS // steps, now_s
                progress(
                    f"compiling the {name}: {done} of some {steps} parts, {pace.time_left(now_s, done, steps)} left"
                )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def time_left(elapsed_s: float, steps: int, of: int) -> str:
    """As `minutes_in_words`, for the steps that are left, where those until now took `elapsed_s`."""
    return minutes_in_words(elapsed_s * max(0, of - steps) / steps)


def minutes_in_words(seconds: float) -> str:
    """`about 4 min`, or `less than a minute`."""
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes else "less than a minute"


@contextmanager
def compiling(products: Sequence[Product], progress: Progress) -> Iterator[list[Exception]]:
    """A context that compiles each product in a thread, and waits for all at its end. It yields the list of failures,
    which is complete after the end. All products are needed, so the first failure breaks the other builds off. What is
    done in the context goes before the compilers, as somebody waits for it.

    If the block fails or is interrupted, the builds are broken off, too; nothing is left of a build that is broken off.
    """
    broken_off, behind, failures = threading.Event(), threading.Event(), list[Exception]()
    behind.set()

    def compile_one(product: Product) -> None:
        try:
            product.ensure(progress, broken_off, behind)
            progress(f"the {product.name} is built")
        except BrokenOff:
            pass
        except Exception as error:  # the caller raises it
            failures.append(error)
            progress(f"the {product.name} cannot be built here")
            broken_off.set()

    # Threads are not joined: an interrupted join counts a running thread as ended.
    with ThreadPoolExecutor(max(1, len(products))) as pool:
        try:
            builds = [pool.submit(compile_one, product) for product in products]
            yield failures
            behind.clear()
            wait(builds)
        except BaseException:
            if not all(build.done() for build in builds):
                progress("ending the builds, and removing what they have unpacked, which may take a minute")
            raise
        finally:
            behind.clear()  # what is removed now is waited for
            broken_off.set()


def one_at_a_time(progress: Progress) -> Progress:
    """A version of `progress` that several threads can call."""
    turn = threading.Lock()

    def say(text: str) -> None:
        with turn:
            progress(text)

    return say

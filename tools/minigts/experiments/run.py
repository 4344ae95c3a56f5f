"""The executor: takes the samples that results directories still lack, one batch at a time, and stores raw outputs.

A directory's manifest says what to measure, so starting and resuming are the same call. Several directories of
experiments on one topology share a lab: each overlay is joined once, and all take their samples over it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.errors import CommandFailed, EnvironmentLacks, MinigtsError
from minigts.experiment_language.model import Experiment
from minigts.experiments import guard, real_seconds, time_limits
from minigts.experiments.commands import estimate_s
from minigts.experiments.derive import derive
from minigts.experiments.matrix import Sample, batches, path_between
from minigts.experiments.sampler import LabControl, Sampler
from minigts.experiments.summary import Verdict
from minigts.overlays import Endpoint
from minigts.providers.base import Provider
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.folder import inside
from minigts.results.schema import LOG, EndpointFacts, Manifest, OverlayFacts
from minigts.topology.plan.plan import Plan

JOINS = 3
"""How often at most an overlay is joined in one run; it is joined again when its data path has changed."""
VERIFIED_EVERY_S, AFTER_A_FAILURE_S = 60.0, 5.0
"""How many seconds after a proof of the data path it is proved again, normally and after a failed sample. If the data
path has changed (Weave's routers fell back to user space), the samples since the last proof are lost."""


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run: samples done, samples in total, seconds left, and what is being done now."""

    done: int
    total: int
    seconds_left: float
    doing: str


@dataclass(frozen=True)
class RunOutcome:
    """The result of a run. `failed` are the samples without a result after all attempts; `skipped` are the overlays
    that could not be joined, with the reason of each."""

    done: int
    failed: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    skipped: Mapping[str, str]


OnProgress = Callable[[RunProgress], None]


def total_s(experiment: Experiment, plan: Plan, samples: Sequence[Sample]) -> float:
    """How long taking `samples` lasts, in seconds, without joining overlays."""
    return sum(_batch_s(experiment, plan, batch) for batch in batches(experiment, samples))


def _batch_s(experiment: Experiment, plan: Plan, batch: Sequence[Sample]) -> float:
    measurement = experiment.measurement(batch[0].measurement)
    longest_s = max(
        estimate_s(measurement.under(sample.condition), path_between(plan, sample.source, sample.target))
        for sample in batch
    )
    return longest_s + (measurement.rest_s or 0.0)


def pending(experiment: Experiment, samples: Sequence[Sample], directory: Path) -> tuple[Sample, ...]:
    """The samples that have to be taken, in order: those without a good result, and those that are taken together with
    one. Raises InputError for a sample whose id cannot be a file's name."""
    lacking = set(store.pending(samples, directory))
    return tuple(sample for batch in batches(experiment, samples) if lacking.intersection(batch) for sample in batch)


def run_together(
    directories: Sequence[Path], provider: Provider, stage: LabControl, on_progress: OnProgress
) -> tuple[RunOutcome, ...]:
    """Take every sample that the directories lack, overlay by overlay, then derive their tables.

    A sample that fails is stored with its error and tried three times in all; then the run continues without it. A
    sample during which the machine was starved is also tried three times, and the third result stays, marked as
    tainted. The run continues without an overlay that cannot be joined; the manifest says why. Raises what `stage` and
    the provider raise, except a command's own failure. A run that ended early is resumed by calling this again: no
    good sample is taken twice.
    """
    with ExitStack() as stack:
        parts = [_RunFolder.open(directory, stack) for directory in directories]
        clock = _Clock(parts, on_progress)
        overlays = dict.fromkeys(sample.overlay for part in parts for sample in part.todo)
        try:
            for overlay in overlays:
                _take_over(overlay, parts, provider, stage, clock)
            return tuple(part.finish() for part in parts)
        except BaseException as error:
            for part in parts:
                part.log.warning("ended early: %s: %s", type(error).__name__, error)
            raise


def take(
    directory: Path, provider: Provider, stage: LabControl, wanted: Collection[str], on_progress: OnProgress
) -> None:
    """Take the `wanted` samples of the directory, by their ids, and derive nothing."""
    with ExitStack() as stack:
        part = _RunFolder.open(directory, stack, wanted)
        clock = _Clock([part], on_progress)
        for overlay in dict.fromkeys(sample.overlay for sample in part.todo):
            _take_over(overlay, [part], provider, stage, clock)


def finish(directory: Path) -> RunOutcome:
    """Derive the tables of a directory whose samples have all been taken."""
    with ExitStack() as stack:
        return _RunFolder.open(directory, stack).finish()


def _take_over(overlay: str, parts: Sequence[_RunFolder], provider: Provider, stage: LabControl, clock: _Clock) -> None:
    """Join an overlay, take the samples of all parts over it, leave; repeat if its data path changed meanwhile."""
    own = [part for part in parts if part.pending(overlay)]
    for _ in range(JOINS):
        clock.say(f"joining {overlay}")
        began = time.monotonic()
        try:
            endpoints, seen = stage.join(overlay), stage.verify(overlay)
            real_seconds.remember_joining(overlay, time.monotonic() - began)
        except (CommandFailed, EnvironmentLacks) as error:
            for part in own:
                part.skip(overlay, str(error))
            stage.leave(overlay)
            return
        try:
            watch = _Watch(provider, stage, overlay, seen)
            steady = all(part.take(overlay, endpoints, provider, watch, clock) for part in own) and watch.steady()
        finally:
            for part in own:
                part.log.info("leaving %s", overlay)
            stage.leave(overlay)
        if steady:
            return


class _Watch:
    """Keeps the samples taken since the data path was last proved, and marks them as failed when it has changed."""

    def __init__(self, provider: Provider, stage: LabControl, overlay: str, seen: str) -> None:
        self.stage, self.seen, self._overlay, self._provider = stage, seen, overlay, provider
        self._since: list[tuple[_RunFolder, Sample]] = []
        self._verified_s = provider.now_s()

    def taken(self, part: _RunFolder, batch: Sequence[Sample], *, good: bool) -> bool:
        """False when the overlay has to be joined again. After a failed sample the data path is proved sooner."""
        if good:
            self._since += [(part, sample) for sample in batch]
        wait_s = VERIFIED_EVERY_S if good else AFTER_A_FAILURE_S
        return self._provider.now_s() < self._verified_s + wait_s or self._proven()

    def steady(self) -> bool:
        return not self._since or self._proven()

    def _proven(self) -> bool:
        try:
            now = self.stage.verify(self._overlay)
        except CommandFailed as error:
            now = str(error)
        if now != self.seen:
            for part, sample in self._since:
                reason = f"the data path changed meanwhile: {' '.join(now.split())[:300]}"
                part.log.warning("%s: %s", sample.id, reason)
                store.discard(part.directory, sample.id, reason)
        self._since, self._verified_s = [], self._provider.now_s()
        return now == self.seen


class _RunFolder:
    """One results directory that is being filled."""

    def __init__(self, directory: Path, log: logging.Logger, wanted: Collection[str] | None) -> None:
        self.directory, self.log = directory, log
        self.manifest = manifests.read(directory)
        every = time_limits.samples(self.manifest)
        self.samples = every if wanted is None else tuple(sample for sample in every if sample.id in wanted)
        self.todo = pending(self.manifest.experiment, self.samples, directory)
        log.info("%s: %d of %d samples to take", self.manifest.experiment.name, len(self.todo), len(self.samples))

    @classmethod
    def open(cls, directory: Path, stack: ExitStack, wanted: Collection[str] | None = None) -> _RunFolder:
        """Open a directory; `wanted` are the ids of the samples to take, None means all."""
        return cls(directory, stack.enter_context(_log_file(inside(directory, LOG))), wanted)

    def pending(self, overlay: str) -> tuple[Sample, ...]:
        over_it = [sample for sample in self.samples if sample.overlay == overlay]
        return pending(self.manifest.experiment, over_it, self.directory)

    def skip(self, overlay: str, reason: str) -> None:
        """Skip the overlay, and write the reason to the manifest."""
        self.log.warning("%s is skipped: %s", overlay, reason)
        manifest = manifests.read(self.directory)
        skipped = {**manifest.skipped, overlay: reason}
        manifests.write(self.directory, manifest.model_copy(update={"skipped": skipped}))

    def take(
        self, overlay: str, endpoints: Mapping[str, Endpoint], provider: Provider, watch: _Watch, clock: _Clock
    ) -> bool:
        """Take the missing samples over `overlay`. False when it has to be joined again."""
        manifest = self._with_overlay(overlay, endpoints, watch)
        sampler = Sampler(self.directory, manifest, provider, watch.stage, endpoints, self.log)
        try:
            for batch in batches(manifest.experiment, self.pending(overlay)):
                for sample in batch:  # a batch that a kill has left incomplete is taken again as a whole
                    store.discard(self.directory, sample.id, "what is taken together with it has no result")
                clock.say(batch[0].id)
                started = time.monotonic()
                good = sampler.take(batch)
                clock.finished(self, batch, time.monotonic() - started, good)
                if not watch.taken(self, batch, good=good):
                    return False
        finally:
            sampler.put_links_back()
        return True

    def _with_overlay(self, overlay: str, endpoints: Mapping[str, Endpoint], watch: _Watch) -> Manifest:
        """The manifest with the overlay's endpoints and what it was laid with, written before the first sample over
        them."""
        manifest = manifests.read(self.directory)
        facts = OverlayFacts(
            **dict(watch.stage.overlay_record(overlay)),
            endpoints={host: EndpointFacts(address=end.address, mtu=end.mtu) for host, end in endpoints.items()},
            verify=watch.seen,
        )
        skipped = {name: reason for name, reason in manifest.skipped.items() if name != overlay}
        changed = manifest.model_copy(
            update={"overlays": {**manifest.overlays, overlay: facts}, "skipped": skipped},
        )
        manifests.write(self.directory, changed)
        return changed

    def finish(self) -> RunOutcome:
        manifest = manifests.read(self.directory)
        left = store.pending(self.samples, self.directory)
        if self.todo or manifest.ended is None:
            after: dict[str, object] = {"ended": manifests.now()}
            if manifest.plan.time == "real":
                after |= {"noise_after": manifests.noise(), "guard": guard.guard_summary(self.directory, self.samples)}
            manifests.write(self.directory, manifest.model_copy(update=after))
        failed = tuple(sample.id for sample in left if sample.overlay not in manifest.skipped)
        self.log.info("ended, %d samples without a result", len(left))
        return RunOutcome(len(self.samples) - len(left), failed, derive(self.directory), manifest.skipped)


class _Clock:
    """Counts samples, and estimates the time left, corrected by how long samples have really taken."""

    def __init__(self, parts: Sequence[_RunFolder], on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._total = sum(len(part.samples) for part in parts)
        self._done = self._total - sum(len(part.todo) for part in parts)
        self._estimates = {
            part.directory: real_seconds.sample_seconds(part.manifest.experiment, part.manifest.plan, part.samples)
            for part in parts
        }
        self._left_s = sum(self._estimate(part, part.todo) for part in parts)
        self._estimated_s = self._spent_s = 0.0

    def _estimate(self, part: _RunFolder, samples: Sequence[Sample]) -> float:
        """As it was estimated when the run began."""
        return sum(self._estimates[part.directory][each.id] for each in samples)

    def say(self, doing: str) -> None:
        factor = self._spent_s / self._estimated_s if self._spent_s > 5 and self._estimated_s > 0 else 1.0
        self._on_progress(RunProgress(self._done, self._total, max(0.0, self._left_s * factor), doing))

    def finished(self, part: _RunFolder, batch: Sequence[Sample], seconds: float, good: bool) -> None:
        estimated_s = self._estimate(part, batch)
        self._left_s -= estimated_s
        self._estimated_s += estimated_s
        self._spent_s += seconds
        if good:
            real_seconds.remember(part.manifest.experiment, part.manifest.plan, batch, seconds)
        self._done += len(batch) if good else 0
        self.say(batch[-1].id)


class _QuietFile(logging.FileHandler):
    """A log that cannot be written (a full disk) must neither end the run nor print: writing raw files will fail."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


@contextmanager
def _log_file(path: Path) -> Iterator[logging.Logger]:
    """The log of this directory, which a resumed run appends to. Times are UTC."""
    log = logging.Logger(f"minigts.run.{path.parent.name}", logging.INFO)
    try:
        new = not os.path.lexists(path)
        handler = _QuietFile(path, encoding="utf-8")
        if new and handler.stream is not None:
            paths.users_file(handler.stream)
    except OSError as error:
        raise MinigtsError(f"{path}: cannot be written: {error.strerror}") from error
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.addHandler(handler)
    try:
        yield log
    finally:
        handler.close()

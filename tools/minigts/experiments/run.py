"""The executor: takes the samples that a results directory still lacks, one at a time, raw output first.

The directory's manifest says what to do, so that starting and resuming are the same call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from minigts.errors import CommandTimeout, MinigtsError
from minigts.experiments import guard, store
from minigts.experiments import manifest as manifests
from minigts.experiments.claims import Verdict
from minigts.experiments.derive import derive
from minigts.experiments.manifest import EndpointFacts, Manifest, OverlayFacts
from minigts.experiments.matrix import Sample, matrix
from minigts.experiments.model import Experiment
from minigts.experiments.parsers import ParseError
from minigts.experiments.store import RawSample
from minigts.experiments.tools import Way, command, estimate_s, read, timeout_s, underlay_mtu, warm_up
from minigts.overlays import Endpoint
from minigts.providers.base import Provider, Result
from minigts.topology.plan import Plan
from minigts.watch import Watch

ATTEMPTS = 3
"""How often a sample is tried in one run, because it failed or because the machine was starved meanwhile."""
WARM_UP_TIMEOUT_S = 10.0

Join = Callable[[str], Mapping[str, Endpoint]]
"""Lays the named overlay over the lab and returns its endpoint on each host."""
Leave = Callable[[str], None]


@dataclass(frozen=True)
class Progress:
    """Where a run stands: samples done of all that the experiment wants, and what is being done now."""

    done: int
    total: int
    seconds_left: float
    doing: str


@dataclass(frozen=True)
class Outcome:
    """What a run came to. `failed` are samples that no attempt brought a result for."""

    done: int
    failed: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


OnProgress = Callable[[Progress], None]


def total_s(experiment: Experiment, plan: Plan, samples: Sequence[Sample]) -> float:
    """How long taking `samples` lasts, in seconds, without joining overlays."""
    return sum(
        estimate_s(experiment.measurement(sample.measurement), plan.path(sample.source, sample.target))
        for sample in samples
    )


def run(
    directory: Path, provider: Provider, join: Join, leave: Leave, on_progress: OnProgress, watch: Watch
) -> Outcome:
    """Take every sample that `directory` lacks, overlay by overlay, then derive its tables.

    A sample that fails is kept with its error and tried again, three times in all; the run goes on without it. So is
    one that `watch` saw a starved machine under, but the third stays, and is marked.
    Raises what `join`, `leave` and the provider raise, except a command's own failure. Whatever ends a run, the
    directory can be resumed by calling this again: no good sample is taken twice.
    """
    manifest = manifests.read(directory)
    samples = matrix(manifest.experiment, manifest.plan)
    todo = store.pending(samples, directory)
    with _log_file(directory / "run.log") as log:
        log.info("%s: %d of %d samples to take", manifest.experiment.name, len(todo), len(samples))
        clock = _Clock(manifest, len(samples), todo, on_progress)
        try:
            for overlay, own in groupby(todo, key=lambda sample: sample.overlay):
                clock.say(f"joining {overlay}")
                endpoints = join(overlay)
                try:
                    manifest = _with_overlay(directory, overlay, endpoints)
                    _Measuring(directory, manifest, provider, endpoints, log, watch).take(tuple(own), clock)
                finally:
                    log.info("leaving %s", overlay)
                    leave(overlay)
            failed = tuple(sample.id for sample in store.pending(samples, directory))
            if todo or manifest.ended is None:
                after = {"ended": manifests.now(), "noise_after": manifests.noise()}
                guarded = guard.summary(directory, samples)
                manifests.write(directory, manifest.model_copy(update={**after, "guard": guarded}))
        except BaseException as error:
            log.warning("ended early: %s: %s", type(error).__name__, error)
            raise
        log.info("ended, %d samples without a result", len(failed))
        return Outcome(len(samples) - len(failed), failed, derive(directory))


def _with_overlay(directory: Path, overlay: str, endpoints: Mapping[str, Endpoint]) -> Manifest:
    """The manifest with the overlay's endpoints, on the disk before the first sample over them.

    It is read again, for `join` may have put the overlay's own facts (`verify`, `readback`) into it.
    """
    manifest = manifests.read(directory)
    verify = manifest.overlays[overlay].verify if overlay in manifest.overlays else ""
    facts = OverlayFacts(
        endpoints={host: EndpointFacts(address=end.address, mtu=end.mtu) for host, end in endpoints.items()},
        verify=verify,
    )
    changed = manifest.model_copy(update={"overlays": {**manifest.overlays, overlay: facts}})
    manifests.write(directory, changed)
    return changed


class _Clock:
    """Counts samples, and guesses the time left from how the estimates held so far."""

    def __init__(self, manifest: Manifest, total: int, todo: Sequence[Sample], on_progress: OnProgress) -> None:
        self._manifest, self._total, self._on_progress = manifest, total, on_progress
        self._done = total - len(todo)
        self._left_s = self._estimate(todo)
        self._estimated_s = self._spent_s = 0.0

    def _estimate(self, samples: Sequence[Sample]) -> float:
        return total_s(self._manifest.experiment, self._manifest.plan, samples)

    def say(self, doing: str) -> None:
        factor = self._spent_s / self._estimated_s if self._estimated_s > 5 else 1.0
        self._on_progress(Progress(self._done, self._total, max(0.0, self._left_s * factor), doing))

    def finished(self, sample: Sample, seconds: float, good: bool) -> None:
        estimated_s = self._estimate((sample,))
        self._left_s -= estimated_s
        self._estimated_s += estimated_s
        self._spent_s += seconds
        self._done += good
        self.say(sample.id)


class _Measuring:
    """Takes samples over one overlay that is up."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        provider: Provider,
        endpoints: Mapping[str, Endpoint],
        log: logging.Logger,
        watch: Watch,
    ) -> None:
        self._directory, self._manifest, self._provider = directory, manifest, provider
        self._endpoints, self._log, self._watch = endpoints, log, watch
        self._underlay_mtu = underlay_mtu(manifest.plan)
        self._tried = store.attempts(directory)
        self._warm: set[tuple[str, str]] = set()

    def take(self, samples: Sequence[Sample], clock: _Clock) -> None:
        for sample in samples:
            clock.say(sample.id)
            started = time.monotonic()
            good = any(self._attempt(sample, last=number == ATTEMPTS) for number in range(1, ATTEMPTS + 1))
            clock.finished(sample, time.monotonic() - started, good)

    def _attempt(self, sample: Sample, *, last: bool) -> bool:
        """Take the sample once and keep what came of it. True when it has a result that stays."""
        source, way = self._source(sample), self._way(sample)
        measurement = self._manifest.experiment.measurement(sample.measurement)
        argv = command(measurement, source, way)
        self._warm_up(sample, source, way)
        number = self._tried.get(sample.id, 0) + 1
        started = manifests.now()
        with self._watch() as watched:
            result = self._run(sample.source, argv, timeout_s(measurement, way.path))
        error, tainted = _error(sample, result), guard.taints(watched.readings)
        again = bool(error or (tainted and not last))
        raw = RawSample(
            sample=sample.id,
            host=sample.source,
            argv=argv,
            code=result.code,
            stdout=result.stdout,
            stderr=result.stderr,
            started=started,
            seconds=round(result.seconds, 6),
            attempt=number,
            error=error,
            machine=watched.readings,
            tainted=tainted,
        )
        store.save(self._directory, raw, repeated=again)
        if again or tainted:
            self._log.warning("%s, attempt %d: %s", sample.id, number, error or f"tainted: {', '.join(tainted)}")
        else:
            self._log.info("%s in %.2f s", sample.id, result.seconds)
        if again:
            self._tried[sample.id] = number
        return not again

    def _source(self, sample: Sample) -> Endpoint:
        return self._endpoint(sample, sample.source)

    def _way(self, sample: Sample) -> Way:
        target = self._endpoint(sample, sample.target)
        path = self._manifest.plan.path(sample.source, sample.target)
        return Way(target.address, target.mtu, self._underlay_mtu, path)

    def _endpoint(self, sample: Sample, host: str) -> Endpoint:
        try:
            return self._endpoints[host]
        except KeyError as error:
            raise MinigtsError(f"overlay {sample.overlay} has no endpoint on {host}") from error

    def _warm_up(self, sample: Sample, source: Endpoint, way: Way) -> None:
        """Once for each path; an echo that is lost is logged and no more, for the sample itself will tell."""
        if (sample.source, sample.target) in self._warm:
            return
        self._warm.add((sample.source, sample.target))
        result = self._run(sample.source, warm_up(source, way), WARM_UP_TIMEOUT_S)
        if result.code != 0:
            self._log.warning("%s: no echo from %s before the sample", sample.id, way.address)

    def _run(self, host: str, argv: Sequence[str], limit_s: float) -> Result:
        try:
            return self._provider.run(host, argv, timeout_s=limit_s, check=False)
        except CommandTimeout as error:
            return Result(host, tuple(argv), error.code, error.stdout, error.stderr, error.timeout_s)


def _error(sample: Sample, result: Result) -> str | None:
    """Why the output is no result, in one line; None when it is one."""
    try:
        read(sample.tool, result.stdout, result.stderr)
    except ParseError as error:
        return f"{error} (code {result.code})" if result.code else str(error)
    return f"the command ended with code {result.code}" if result.code else None


class _QuietFile(logging.FileHandler):
    """A log that cannot be written (a full disk) must not end the run, nor print: the raw files will say it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


@contextmanager
def _log_file(path: Path) -> Iterator[logging.Logger]:
    """A log of this directory alone, appended to when a run resumes. Times are UTC."""
    log = logging.Logger(f"minigts.run.{path.parent.name}", logging.INFO)
    try:
        handler = _QuietFile(path, encoding="utf-8")
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

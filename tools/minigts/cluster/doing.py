"""Jobs, done by the workers of a cluster: handed out, asked for again, gathered as they come."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.cluster import worker
from minigts.cluster.engine import WAITING_S, Opened, Say
from minigts.cluster.jobs import Job
from minigts.cluster.worker import Answer
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.experiments.run import OnProgress, Progress
from minigts.language import documents
from minigts.providers import registry
from minigts.providers.base import Ships

if TYPE_CHECKING:
    from distributed import Future

ATTEMPTS = 3
"""To how many workers a job is given at the most, when its lab fails. How many may die under it is the scheduler's to
count: engine.MOST_DEATHS."""
PIECE_BYTES = 8 << 20
_BOUNDS = documents.Bounds(elements=1_000_000, bytes=1 << 30)
"""Of an answer, which has the raw samples of a job as texts."""
REFUSING_S = 1.0
"""Who refuses a job is idle, and would be given the next one at once, and so all of them."""
Keep = Callable[[Job, Mapping[str, str]], None]
"""What becomes of the files that a job has brought."""


@dataclass(frozen=True)
class _Given:
    """A job in a worker's hands, or on its way there."""

    job: Job
    attempt: int
    sent: frozenset[str]
    """The machines that had been sent what labs are made of, before."""


@dataclass
class Outcome:
    """Jobs that nobody could do, each with the reason; and workers that were not given any more, each with its own."""

    failed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def perform(engine: Opened, jobs: Sequence[Job], keep: Keep, say: Say, on_progress: OnProgress) -> Outcome:
    """Have the jobs done; `keep` gets what comes of each as it comes. Raises MinigtsError when the engine is lost, and
    what `keep` raises; then no more jobs are begun, and the labs on this cluster's machines are taken down.
    """
    doing = _Doing(engine, say)
    try:
        doing.run(jobs, keep, on_progress)
    finally:
        doing.end()
    return doing.outcome


class _Standing:
    """How far the jobs are: samples of those that have ended, and what the workers say of others meanwhile."""

    def __init__(self, jobs: Sequence[Job], on_progress: OnProgress, workers: int) -> None:
        self._under_way = {job.number: job for job in jobs}
        self._said = dict.fromkeys(self._under_way, 0)
        self._total, self._total_s = sum(len(job.samples) for job in jobs), sum(map(_cost_s, jobs))
        self._done, self._done_s = 0, 0.0
        self._on_progress, self._started, self._workers = on_progress, time.monotonic(), workers
        self._turn = threading.Lock()
        self._show("beginning")

    def heard(self, told: Mapping[str, int]) -> None:
        """What a worker says, on the client's own thread. A job that is given once more begins again."""
        with self._turn:
            if (job := self._under_way.get(told["job"])) is not None:
                self._is_at(job, told["done"])

    def finished(self, job: Job, workers: int) -> None:
        with self._turn:
            self._workers = workers
            del self._under_way[job.number]
            self._is_at(job, len(job.samples))

    def _is_at(self, job: Job, done: int) -> None:
        more = done - self._said[job.number]
        self._said[job.number] = done
        self._done += more
        self._done_s += _cost_s(job) * more / len(job.samples)
        self._show(job.name)

    def _show(self, doing: str) -> None:
        spent_s, left_s = time.monotonic() - self._started, self._total_s - self._done_s
        left_s *= spent_s / self._done_s if self._done else 1 / self._workers
        among = f"{doing} ({self._workers} worker{'s' if self._workers > 1 else ''})"
        self._on_progress(Progress(self._done, self._total, left_s, among))


class _Doing:
    def __init__(self, engine: Opened, say: Say) -> None:
        self._client, self._id, self._say = engine.client, engine.campaign_id, say
        self.outcome = Outcome()
        self._under_way: dict[Future, _Given] = {}
        self._sent: set[str] = set()

    def run(self, jobs: Sequence[Job], keep: Keep, on_progress: OnProgress) -> None:
        from distributed import as_completed  # noqa: PLC0415

        standing = _Standing(jobs, on_progress, self._worker_count())
        self._client.subscribe_topic(worker.topic(self._id), lambda event: standing.heard(event[1]))
        coming = as_completed([self._submit(job, 1) for job in jobs], loop=self._client.loop)
        for future in coming:
            given = self._under_way.pop(future)
            job = given.job
            answer, where = self._answer(future)
            if answer.kind == "done":
                keep(job, answer.files)
            elif (again := self._again(given, answer, where)) is not None:
                coming.add(again)
                continue
            future.release()
            standing.finished(job, self._worker_count())

    def _submit(self, job: Job, attempt: int) -> Future:
        workers = self._not_refused() if self.outcome.refused else None
        future = self._client.submit(
            _on_worker(),
            "perform",
            job.model_dump_json(),
            worker.identity(),
            self._id,
            key=f"minigts-{self._id}-{job.number}-{attempt}-{secrets.token_hex(2)}",
            pure=False,
            workers=workers,
            # Or it would wait for ever once these are gone. Who refuses it says so at once.
            allow_other_workers=workers is not None,
        )
        self._under_way[future] = _Given(job, attempt, frozenset(self._sent))
        return future

    def _answer(self, future: Future) -> tuple[Answer, str]:
        """What a worker said, and its address; empty when it is gone."""
        from distributed import KilledWorker  # noqa: PLC0415

        if future.status in ("cancelled", "lost"):
            raise MinigtsError("the engine has lost the jobs: its scheduler is gone")
        error = future.exception()
        if isinstance(error, KilledWorker):
            return Answer(kind="killed", why=f"{error.allowed_failures + 1} workers died while they had it"), ""
        if error is not None:
            return Answer(kind="failed", why=f"{type(error).__name__}: {error}"), ""
        where = next(iter(self._client.who_has([future]).get(future.key, ())), "")
        return documents.model(future.result(), Answer, _BOUNDS), where

    def _again(self, given: _Given, answer: Answer, where: str) -> Future | None:
        """The job given to a worker once more; None when it is given up."""
        if answer.kind == "lacks-parts":
            wrong = self._wrong_with_parts(given, answer.machine, where)
            if wrong is None:
                return self._submit(given.job, given.attempt)
            answer = wrong
        if answer.kind == "refused" and where:
            if where not in self.outcome.refused:
                self._say(f"{where} is given no more jobs: {answer.why}")
            self.outcome.refused[where] = f"{where}: {answer.why}"
            return self._submit(given.job, given.attempt)
        if answer.kind != "killed" and given.attempt < ATTEMPTS:
            return self._submit(given.job, given.attempt + 1)
        self.outcome.failed[given.job.name] = answer.why
        return None

    def _wrong_with_parts(self, given: _Given, machine: str, where: str) -> Answer | None:
        """A machine that had not what labs are made of is sent that, once. When that is no use, what its worker should
        have said instead; None when the job can be given again."""
        if machine in given.sent:
            return Answer(kind="refused", why="it lacks what labs are made of, though it was sent that")
        if machine not in self._sent:
            try:
                if why := self._ship(given.job, where):
                    return Answer(kind="refused", why=why)
            except OSError as error:  # the worker is gone, or its disk is full
                return Answer(kind="failed", why=f"{where}: what labs are made of cannot be sent there: {error}")
            self._sent.add(machine)
        return None

    def _ship(self, job: Job, where: str) -> str:
        """Send what labs are made of to a worker's machine; why that is no use there, in words. Raises OSError."""
        manifest = job.manifest
        provider = registry.make(manifest.provider, Path(), manifest.plan.time)
        if not isinstance(provider, Ships):
            return f"it lacks what provider {manifest.provider} has built; build it there"
        with tempfile.TemporaryDirectory() as place:
            packed = Path(place) / worker.PACKED
            digest = provider.pack(packed, self._say)
            self._say(f"sending {packed.stat().st_size >> 20} MiB to {where}")
            with packed.open("rb") as file:
                offset = 0
                while data := file.read(PIECE_BYTES):
                    self._client.run(_on_worker(), "receive", self._id, offset, data, workers=[where])
                    offset += len(data)
        told = self._client.run(
            _on_worker(), "unpack", self._id, digest, provider.name, manifest.plan.time, workers=[where]
        )
        return next(filter(None, told.values()), "")

    def _workers(self) -> list[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def _not_refused(self) -> list[str]:
        """When there is none, one that has died may be coming again. Raises EnvironmentLacks when none has come."""
        every = self._workers()
        if not set(every) - self.outcome.refused.keys():
            try:
                self._client.wait_for_workers(len(every) + 1, timeout=WAITING_S)
            except TimeoutError as error:
                told = "; ".join(dict.fromkeys(self.outcome.refused.values()))
                raise EnvironmentLacks(f"no worker can do the jobs: {told}") from error
            every = self._workers()
        return [address for address in every if address not in self.outcome.refused]

    def _worker_count(self) -> int:
        return max(1, len(self._workers()) - len(self.outcome.refused))

    def end(self) -> None:
        """Begin no more jobs. When some are under way, their workers' labs are theirs to take down; what is left of
        dead ones is taken down here."""
        unfinished = bool(self._under_way)
        with contextlib.suppress(OSError, RuntimeError):  # of an engine that is gone nothing can be asked
            self._client.cancel(list(self._under_way), force=True)
            told = self._client.run(_on_worker(), "remove_labs", self._id, unfinished, on_error="return")
            for where, why in told.items():
                if why:
                    self._say(f"{where}: {why}")


def _on_worker() -> Callable[..., str]:
    """Calls what `worker` has of a name. It goes to a worker as it stands here, so that a scheduler needs no minigts,
    and a worker without one can say so."""

    def call(name: str, *words: object) -> str:
        import json  # noqa: PLC0415
        import time  # noqa: PLC0415

        try:
            from minigts.cluster import worker  # noqa: PLC0415
        except ImportError as error:
            if name != "perform":
                return ""
            said = json.dumps({"kind": "refused", "why": f"minigts cannot be used there: {error}"})
        else:
            said = getattr(worker, name)(*words)
        if said.replace(" ", "", 1).startswith('{"kind":"refused"'):
            time.sleep(REFUSING_S)
        return said

    return call


def _cost_s(job: Job) -> float:
    """For the time left: lab and join take some, whatever is measured."""
    return 10.0 + job.seconds

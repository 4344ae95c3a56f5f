"""Lets the workers of a cluster do jobs: hands them out, repeats failed ones, and collects the results."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from minigts.cluster import worker
from minigts.cluster.engine import OpenEngine
from minigts.cluster.worker import Answer
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.experiments.run import OnProgress, RunProgress
from minigts.foreign import Foreign, one_line
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import Exports
from minigts.topology.time import Time

if TYPE_CHECKING:
    from distributed import Future

ATTEMPTS = 3
"""How often a job is tried at most when its lab fails. The scheduler counts workers that die: engine.MOST_DEATHS."""
RESTARTED_S = 120.0
"""How long to wait for a worker that is started in place of one that died. Beside other work on the same processors it
takes more than 30 s, the limit until 1 December 2026."""
PIECE_BYTES = 8 << 20
_BOUNDS = documents.Bounds(elements=1_000_000, bytes=1 << 30)
"""Bounds of an answer, which has the raw samples of a job as texts."""
REFUSING_S = 1.0
"""How long a worker waits before it refuses a job: as it is idle, it would otherwise get all other jobs at once."""


class Work(Protocol):
    """A job: `cluster.jobs.Job`, or another."""

    performed_by: ClassVar[str]
    """The function that does it, as `_on_worker` names it. It gets the job as JSON, `worker.identity` and the
    campaign's id, and returns a `worker.Answer` as JSON."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int:
        """How much of the progress it is: its samples."""
        ...

    @property
    def seconds(self) -> float:
        """How long it measures, for the estimate of the time left."""
        ...

    @property
    def provider(self) -> str: ...

    @property
    def time(self) -> Time: ...

    def model_dump_json(self) -> str: ...


J = TypeVar("J", bound=Work)
Keep: TypeAlias = Callable[[J, Mapping[str, str]], None]
"""A function that stores the files of a job."""
Lose: TypeAlias = Callable[[J, str], None]
"""A function that takes a job that is given up, with the reason."""


@dataclass(frozen=True)
class _Assignment(Generic[J]):
    """A job that was submitted and has not ended."""

    job: J
    attempt: int
    sent: frozenset[str]
    """The machines that had been sent the parts of labs (image, kernel, clock) before it was submitted."""


def _told_by_keep(_at: RunProgress) -> None:
    """For callers whose `keep` and `lose` tell of each job as it ends."""


def run_jobs(
    engine: OpenEngine,
    jobs: Sequence[J],
    keep: Keep[J],
    lose: Lose[J],
    say: Progress,
    on_progress: OnProgress = _told_by_keep,
) -> None:
    """Let the engine do the jobs; as each ends, `keep` gets its files, or `lose` the reason why it is given up. Raises
    MinigtsError when the engine is lost, and what these two raise; then no more jobs begin, and the labs on the
    cluster's machines are taken down.
    """
    doing = _Dispatch[J](engine, say)
    try:
        doing.run(jobs, keep, lose, on_progress)
    finally:
        doing.end()


class _ProgressCounter:
    """The progress of all jobs: samples of ended jobs, and those that workers report meanwhile."""

    def __init__(self, jobs: Sequence[Work], on_progress: OnProgress, workers: int) -> None:
        self._under_way = {job.number: job for job in jobs}
        self._said = dict.fromkeys(self._under_way, 0)
        self._total, self._total_s = sum(job.size for job in jobs), sum(map(_cost_s, jobs))
        self._done, self._done_s = 0, 0.0
        self._on_progress, self._started, self._workers = on_progress, time.monotonic(), workers
        self._turn = threading.Lock()
        self._show("beginning")

    def hear(self, told: Mapping[str, int]) -> None:
        """Take a worker's report of its progress, in a thread of the client. A repeated job begins at 0 again."""
        with self._turn:
            if (job := self._under_way.get(told["job"])) is not None:
                self._is_at(job, told["done"])

    def finished(self, job: Work, workers: int) -> None:
        with self._turn:
            self._workers = workers
            del self._under_way[job.number]
            self._is_at(job, job.size)

    def _is_at(self, job: Work, done: int) -> None:
        more = done - self._said[job.number]
        self._said[job.number] = done
        self._done += more
        self._done_s += _cost_s(job) * more / job.size
        self._show(job.name)

    def _show(self, doing: str) -> None:
        spent_s, left_s = time.monotonic() - self._started, self._total_s - self._done_s
        left_s *= spent_s / self._done_s if self._done else 1 / self._workers
        among = f"{doing} ({self._workers} worker{'s' if self._workers > 1 else ''})"
        self._on_progress(RunProgress(self._done, self._total, left_s, among))


class _Dispatch(Generic[J]):
    def __init__(self, engine: OpenEngine, say: Progress) -> None:
        self._client, self._id, self._say = engine.client, engine.campaign_id, say
        self._refused: dict[str, str] = {}
        """The workers that get no more jobs, each with the reason."""
        self._under_way: dict[Future, _Assignment[J]] = {}
        self._sent: set[str] = set()

    def run(self, jobs: Sequence[J], keep: Keep[J], lose: Lose[J], on_progress: OnProgress) -> None:
        from distributed import as_completed  # noqa: PLC0415

        standing = _ProgressCounter(jobs, on_progress, self._worker_count())
        self._client.subscribe_topic(worker.topic(self._id), lambda event: self._hear(event[1], standing))
        coming = as_completed([self._submit(job, 1) for job in jobs], loop=self._client.loop)
        for future in coming:
            given = self._under_way.pop(future)
            job = given.job
            answer, where = self._answer(future)
            if answer.kind == "done":
                keep(job, answer.files)
            elif isinstance(again := self._again(given, answer, where), str):
                lose(job, again)
            else:
                coming.add(again)
                continue
            future.release()
            standing.finished(job, self._worker_count())

    def _hear(self, told: Mapping[str, Any], standing: _ProgressCounter) -> None:
        if "line" in told:
            self._say(one_line(Foreign(told["line"])))
        else:
            standing.hear(told)

    def _submit(self, job: J, attempt: int) -> Future:
        workers = self._not_refused() if self._refused else None
        future = self._client.submit(
            _on_worker(),
            job.performed_by,
            job.model_dump_json(),
            worker.identity(),
            self._id,
            key=f"minigts-{self._id}-{job.number}-{attempt}-{secrets.token_hex(2)}",
            pure=False,
            workers=workers,
            # Otherwise the job would wait for ever once these workers are gone. Other workers may refuse it.
            allow_other_workers=workers is not None,
        )
        self._under_way[future] = _Assignment(job, attempt, frozenset(self._sent))
        return future

    def _answer(self, future: Future) -> tuple[Answer, str]:
        """A worker's answer, and the worker's address; it is empty when the worker is gone."""
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

    def _again(self, given: _Assignment[J], answer: Answer, where: str) -> Future | str:
        """Submit the job once more; the reason when it is given up."""
        if answer.kind == "lacks-parts":
            wrong = self._wrong_with_parts(given, answer.machine, where)
            if wrong is None:
                return self._submit(given.job, given.attempt)
            answer = wrong
        if answer.kind == "refused" and where:
            if where not in self._refused:
                self._say(f"{where} is given no more jobs: {answer.why}")
            self._refused[where] = f"{where}: {answer.why}"
            return self._submit(given.job, given.attempt)
        if answer.kind == "failed" and given.attempt < ATTEMPTS:
            return self._submit(given.job, given.attempt + 1)
        return answer.why

    def _wrong_with_parts(self, given: _Assignment[J], machine: str, where: str) -> Answer | None:
        """Send the parts of labs to a machine that lacks them, once. None when the job can be submitted again;
        otherwise the answer to use instead of the worker's."""
        if machine in given.sent:
            return Answer(kind="refused", why="it lacks the parts of labs, though they were sent there")
        if machine not in self._sent:
            try:
                if why := self._ship(given.job, where):
                    return Answer(kind="refused", why=why)
            except OSError as error:  # the worker is gone, or its disk is full
                return Answer(kind="failed", why=f"{where}: the parts of labs cannot be sent there: {error}")
            self._sent.add(machine)
        return None

    def _ship(self, job: J, where: str) -> str:
        """Send the parts of labs to a worker's machine; return why it cannot use them, or "". Raises OSError."""
        provider = registry.make(job.provider, Path(), job.time)
        if not isinstance(provider, Exports):
            return f"it lacks the parts that provider {job.provider} builds; build them there"
        with tempfile.TemporaryDirectory() as place:
            packed = Path(place) / worker.PACKED
            digest = provider.pack(packed, self._say)
            self._say(f"sending {packed.stat().st_size >> 20} MiB to {where}")
            with packed.open("rb") as file:
                offset = 0
                while data := file.read(PIECE_BYTES):
                    self._client.run(_on_worker(), "receive", self._id, offset, data, workers=[where])
                    offset += len(data)
        told = self._client.run(_on_worker(), "unpack", self._id, digest, provider.name, job.time, workers=[where])
        return next(filter(None, told.values()), "")

    def _workers(self) -> list[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def _not_refused(self) -> list[str]:
        """The workers that have not refused jobs. If there is none, it waits for a restarted one, and raises
        EnvironmentLacks when none comes in RESTARTED_S."""
        every = self._workers()
        if not set(every) - self._refused.keys():
            try:
                self._client.wait_for_workers(len(every) + 1, timeout=RESTARTED_S)
            except TimeoutError as error:
                told = "; ".join(dict.fromkeys(self._refused.values()))
                raise EnvironmentLacks(f"no worker can do the jobs: {told}") from error
            every = self._workers()
        return [address for address in every if address not in self._refused]

    def _worker_count(self) -> int:
        return max(1, len(self._workers()) - len(self._refused))

    def end(self) -> None:
        """Begin no more jobs, and take labs down on all machines: those of dead workers, and while jobs are under way
        only those."""
        unfinished = bool(self._under_way)
        with contextlib.suppress(OSError, RuntimeError):  # the engine may be gone
            self._client.cancel(list(self._under_way), force=True)
            told = self._client.run(_on_worker(), "remove_labs", self._id, unfinished, on_error="return")
            for where, why in told.items():
                if why:
                    self._say(f"{where}: {why}")


def _on_worker() -> Callable[..., str]:
    """A function that calls a function of module `worker` by its name, or of another module as `MODULE:NAME`. Dask
    sends its code, so that a scheduler needs no minigts, and a worker without minigts can say so."""

    def call(name: str, *words: object) -> str:
        import importlib  # noqa: PLC0415
        import json  # noqa: PLC0415
        import time  # noqa: PLC0415

        module, _, function = name.rpartition(":")
        try:
            found = importlib.import_module(module or "minigts.cluster.worker")
        except ImportError as error:
            if function != "perform":
                return ""
            said = json.dumps({"kind": "refused", "why": f"minigts cannot be used there: {error}"})
        else:
            said = getattr(found, function)(*words)
        if said.replace(" ", "", 1).startswith('{"kind":"refused"'):
            time.sleep(REFUSING_S)
        return said

    return call


def _cost_s(job: Work) -> float:
    """The seconds that a job takes, for the estimate of the time left: 10 for its lab, and those that it measures."""
    return 10.0 + job.seconds

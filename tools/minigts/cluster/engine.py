"""Jobs done on the workers of a Dask cluster: one that is begun here, one of Dask's own classes, or one that runs."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from minigts.cluster import worker
from minigts.cluster.jobs import Job
from minigts.cluster.worker import Answer
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiments.run import OnProgress, Progress
from minigts.language.source import Language, read_text
from minigts.language.tree import Data, read_tree
from minigts.language.validation import findings_of
from minigts.providers import registry
from minigts.providers.base import Ships

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.deploy import Cluster

LOCAL = "local"
RUNNING = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
"""How the address of a scheduler that runs begins."""
ATTEMPTS = 3
"""How often a job is given to a worker, because a lab failed or a worker went away."""
MOST_WORKERS = 4096
WAITING_S = 60.0
"""For the first worker of a cluster, and for an answer that takes no measuring."""
PIECE_BYTES = 8 << 20
LANGUAGE = Language(
    name="engine", opening="`cluster:`", largest_bytes=100_000, instead_of_aliases="write out what is meant"
)
Say = Callable[[str], None]


class EngineFile(BaseModel):
    """A file that says which cluster to begin."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: Annotated[str, Field(pattern=r"^[A-Za-z_][\w]*(\.[A-Za-z_][\w]*)+$")]
    """One of Dask's classes, such as distributed.SSHCluster or dask_jobqueue.SLURMCluster."""
    options: dict[str, Any] = {}
    """What that class takes."""
    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] | None = None
    """How many it is asked for; None: as many as the options make."""


@dataclass(frozen=True)
class Opened:
    """An engine, and what the labs of its jobs are called by."""

    client: Client
    campaign_id: str


@dataclass
class Outcome:
    """Jobs that nobody could do, each with the reason; and workers that were not given any more, each with its own."""

    failed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def missing() -> list[str]:
    """What this installation lacks, a sentence each."""
    if importlib.util.find_spec("distributed") is not None:
        return []
    return ["--on takes Dask's distributed, which is not installed here; with pipx: pipx inject minigts distributed"]


def checked(on: str) -> str | EngineFile:
    """The engine that `--on` names. Raises InputError, EnvironmentLacks."""
    if on.startswith(RUNNING) or on == LOCAL:
        found: str | EngineFile = on
    elif on.startswith(f"{LOCAL}:"):
        count = on.removeprefix(f"{LOCAL}:")
        if not count.isdecimal() or not 1 <= int(count) <= MOST_WORKERS:
            raise InputError(
                f"--on {on[:60]}: write local:N with as many workers as are wanted, from 1 to {MOST_WORKERS}"
            )
        found = on
    elif on.endswith((".yaml", ".yml")):
        found = _read(Path(on))
    else:
        raise InputError(
            f"--on {on[:60]}: an engine is local, local:N, the address of a Dask scheduler, or a file .yaml"
        )
    if lacking := missing():
        raise EnvironmentLacks("\n".join(lacking))
    return found


def _read(path: Path) -> EngineFile:
    tree = read_tree(read_text(path, LANGUAGE), str(path), LANGUAGE)
    try:
        return EngineFile.model_validate(_typed(tree.data))
    except ValidationError as error:
        raise InputError([tree.problem(str(path), each) for each in findings_of(error, EngineFile)]) from error


def _typed(data: Data) -> Any:
    """With numbers and truth values as such, which a class's options want."""
    if isinstance(data, dict):
        return {key: _typed(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_typed(value) for value in data]
    if data in ("true", "false"):
        return data == "true"
    try:
        return int(data or "")
    except ValueError:
        return data


@contextmanager
def opened(engine: str | EngineFile, say: Say) -> Iterator[Opened]:
    """The engine, with a worker at least. What was begun for it ends with the context, and no lab of a job that was
    broken off stays on this machine. Raises EnvironmentLacks, InputError.
    """
    from distributed import Client  # noqa: PLC0415

    for name in [*logging.root.manager.loggerDict]:  # what they would say of a worker that went is said here
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    campaign_id = secrets.token_hex(3)
    with ExitStack() as stack:
        stack.callback(worker.remove_labs, campaign_id, True)
        try:
            address = engine if isinstance(engine, str) and engine.startswith(RUNNING) else None
            cluster = None if address else stack.enter_context(_begun(engine, stack))
            client = stack.enter_context(Client(address or cluster, timeout=WAITING_S, set_as_default=False))
            say("waiting for the first worker")
            # A queue may be long.
            client.wait_for_workers(1, timeout=None if isinstance(engine, EngineFile) else WAITING_S)
        except (OSError, TimeoutError) as error:
            raise EnvironmentLacks(f"the engine does not answer: {error or 'no worker came'}") from error
        yield Opened(client, campaign_id)


def _begun(engine: str | EngineFile, stack: ExitStack) -> Cluster:
    if isinstance(engine, EngineFile):
        return _of_class(engine)
    from distributed import LocalCluster  # noqa: PLC0415

    count = int(engine.partition(":")[2] or os.cpu_count() or 1)
    return LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=stack.enter_context(tempfile.TemporaryDirectory(prefix="minigts-workers-")),
        silence_logs=logging.CRITICAL,
        memory_limit=0,
    )


def _of_class(engine: EngineFile) -> Cluster:
    from distributed.deploy import Cluster  # noqa: PLC0415

    module, _, name = engine.cluster.rpartition(".")
    try:
        wanted = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise EnvironmentLacks(f"engine {engine.cluster}: {error}; its package has to be beside minigts") from error
    # SSHCluster is a function that makes one.
    if not callable(wanted):
        raise InputError(f"engine {engine.cluster}: {module} has no such class")
    try:
        made = wanted(**engine.options)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"engine {engine.cluster}: cannot be begun with these options: {error}") from error
    if not isinstance(made, Cluster):
        raise InputError(f"engine {engine.cluster}: is no cluster of Dask's")
    if engine.workers is not None:
        made.scale(engine.workers)
    return made


def perform(
    engine: Opened,
    jobs: Sequence[Job],
    keep: Callable[[Job, Mapping[str, str]], None],
    say: Say,
    on_progress: OnProgress,
) -> Outcome:
    """Have the jobs done; `keep` gets what comes of each as it comes. Raises MinigtsError when the engine is lost, and
    what `keep` raises; then no more jobs are begun, and the labs on this cluster's machines are taken down.
    """
    doing = _Doing(engine, say)
    try:
        doing.run(jobs, keep, on_progress)
    finally:
        doing.end()
    return doing.outcome


class _Doing:
    def __init__(self, engine: Opened, say: Say) -> None:
        self._client, self._id, self._say = engine.client, engine.campaign_id, say
        self.outcome = Outcome()
        self._under_way: dict[Future, tuple[Job, int]] = {}
        self._shipped: set[str] = set()

    def run(self, jobs: Sequence[Job], keep: Callable[[Job, Mapping[str, str]], None], on_progress: OnProgress) -> None:
        from distributed import as_completed  # noqa: PLC0415

        started, done, total_s = time.monotonic(), 0, sum(_cost_s(job) for job in jobs)
        left_s = total_s
        coming = as_completed([self._submit(job, 1) for job in jobs], loop=self._client.loop)
        on_progress(Progress(0, len(jobs), total_s / self._worker_count(), self._among_workers("beginning")))
        for future in coming:
            job, attempt = self._under_way.pop(future)
            answer, where = self._answer(future)
            if answer.kind == "done":
                keep(job, answer.files)
            elif (again := self._again(job, attempt, answer, where)) is not None:
                coming.add(again)
                continue
            future.release()
            done += 1
            left_s -= _cost_s(job)
            spent_s = time.monotonic() - started
            left = spent_s * left_s / (total_s - left_s) if total_s > left_s else left_s
            on_progress(Progress(done, len(jobs), left, self._among_workers(job.name)))

    def _submit(self, job: Job, attempt: int) -> Future:
        workers = None
        if self.outcome.refused:
            workers = [address for address in self._workers() if address not in self.outcome.refused]
            if not workers:
                told = "; ".join(dict.fromkeys(self.outcome.refused.values()))
                raise EnvironmentLacks(f"no worker can do the jobs: {told}")
        future = self._client.submit(
            _on_worker(),
            "perform",
            job.model_dump_json(),
            worker.identity(),
            self._id,
            key=f"minigts-{self._id}-{job.number}-{attempt}-{secrets.token_hex(2)}",
            pure=False,
            workers=workers,
        )
        self._under_way[future] = (job, attempt)
        return future

    def _answer(self, future: Future) -> tuple[Answer, str]:
        """What a worker said, and its address. A worker that died too often has said that it failed."""
        if future.status in ("cancelled", "lost"):
            raise MinigtsError("the engine has lost the jobs: its scheduler is gone")
        error = future.exception()
        if error is not None:
            return Answer(kind="failed", why=f"{type(error).__name__}: {error}"), ""
        where = next(iter(self._client.who_has([future]).get(future.key, ())), "")
        return Answer.model_validate_json(future.result()), where

    def _again(self, job: Job, attempt: int, answer: Answer, where: str) -> Future | None:
        """The job given to a worker once more; None when it is given up."""
        if answer.kind == "lacks-parts":
            self._ship(job, answer.machine, where)
            return self._submit(job, attempt)
        if answer.kind == "refused":
            self.outcome.refused[where] = f"{where}: {answer.why}"
            self._say(f"{where} is given no more jobs: {answer.why}")
            return self._submit(job, attempt)
        if attempt < ATTEMPTS:
            return self._submit(job, attempt + 1)
        self.outcome.failed[job.name] = answer.why
        return None

    def _ship(self, job: Job, machine: str, where: str) -> None:
        """Send what labs are made of to a worker's machine, once."""
        if machine in self._shipped:
            return
        self._shipped.add(machine)
        manifest = job.manifest
        provider = registry.make(manifest.provider, Path(), manifest.plan.time)
        if not isinstance(provider, Ships):
            raise EnvironmentLacks(f"{where} lacks what provider {manifest.provider} has built; build it there")
        with tempfile.TemporaryDirectory() as place:
            packed = Path(place) / worker.PACKED
            digest = provider.pack(packed, self._say)
            self._say(f"sending {packed.stat().st_size >> 20} MiB to {where}")
            with packed.open("rb") as file:
                offset = 0
                while data := file.read(PIECE_BYTES):
                    self._client.run(_on_worker(), "receive", self._id, offset, data, workers=[where])
                    offset += len(data)
        why = self._client.run(
            _on_worker(), "unpack", self._id, digest, provider.name, manifest.plan.time, workers=[where]
        )
        if any(why.values()):
            raise MinigtsError(f"{where}: {next(filter(None, why.values()))}")

    def _workers(self) -> list[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def _worker_count(self) -> int:
        return max(1, len(self._workers()) - len(self.outcome.refused))

    def _among_workers(self, doing: str) -> str:
        count = self._worker_count()
        return f"{doing} ({count} worker{'s' if count > 1 else ''})"

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

        try:
            from minigts.cluster import worker  # noqa: PLC0415
        except ImportError as error:
            if name != "perform":
                return ""
            return json.dumps({"kind": "refused", "why": f"minigts cannot be used there: {error}"})
        found: str = getattr(worker, name)(*words)
        return found

    return call


def _cost_s(job: Job) -> float:
    """For the time left: lab and join take some, whatever is measured."""
    return 10.0 + job.seconds

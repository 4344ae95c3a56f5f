"""Does one job, in a process of a worker on any machine.

Job and answer are JSON, so that another version of minigts can read the job and answer why it refuses it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

import minigts
from minigts import lab as labs
from minigts import overlays, paths
from minigts.cluster.jobs import Job
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiments import lab_course, run, run_folders
from minigts.experiments.lab_control import RealLabControl
from minigts.lab import Lab
from minigts.lab.rundir import lab_named
from minigts.language import documents
from minigts.machine.proc import PROC, boot_id
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import Exports
from minigts.results import courses
from minigts.results import manifest as manifests
from minigts.results.folder import OF_A_FILE, inside, read_text
from minigts.results.schema import CERTIFICATE, LOG, RAW
from minigts.topology.time import Time

PREFIX = "job"
"""The prefix of the names of jobs' labs."""
PACKED = "parts"
TOLD_EVERY_S = 1.0


class Answer(BaseModel):
    """The result of a job. `files` are by their path in the run's directory, `why` is the reason of a failure."""

    model_config = ConfigDict(extra="ignore")

    kind: Literal["done", "failed", "wrong", "killed", "refused", "lacks-parts"]
    """`wrong` is a job that no worker can do, such as one of a file that cannot be read; `killed` is one whose workers
    died."""
    why: str = ""
    machine: str = ""
    """The machine and cache of the worker, as `machine` returns it: its processes share what is built."""
    files: dict[str, str] = {}


class OfALab(Protocol):
    """Work for a worker: the provider and the time of its lab."""

    @property
    def provider(self) -> str: ...

    @property
    def time(self) -> Time: ...


W = TypeVar("W", bound=OfALab)


@functools.cache
def identity() -> str:
    """The identity of this minigts: its version, and a digest of all files that decide how a lab behaves."""
    root = paths.project_root()
    package = Path(minigts.__file__).parent
    files = [*package.rglob("*.py"), *(path for path in (root / "provision").rglob("*") if path.is_file())]
    base = package if paths.is_installed() else root
    named = sorted((path.relative_to(base).as_posix(), path) for path in files if path.is_relative_to(base))
    return (
        f"{minigts.__version__} {paths.content_key((name, path) for name, path in named if '__pycache__' not in name)}"
    )


def machine() -> str:
    """The name of this machine, and the cache directory on it."""
    return f"{socket.gethostname()}:{paths.cache_root()}"


@functools.cache
def where_processes_are() -> str:
    """Eight hexadecimal digits for the scope of process numbers: this machine since its start, or a container on it.
    Other machines may share the state directory."""
    numbered = f"{socket.gethostname()} {boot_id()} {(PROC / 'self/ns/pid').readlink()}"
    return hashlib.sha256(numbered.encode()).hexdigest()[:8]


def perform(job: str, wanted: str, campaign_id: str) -> str:
    """Do a job, if `wanted` is the identity of this minigts; return the answer as JSON."""

    def do(read: Job) -> Mapping[str, str]:
        return measure_job(read, campaign_id, _silent, telling(campaign_id, read.number))

    return answer(wanted, lambda: documents.model(job, Job, OF_A_FILE), do).model_dump_json()


def answer(wanted: str, read: Callable[[], W], do: Callable[[W], Mapping[str, str]]) -> Answer:
    """What to answer to a request of the minigts with that identity: the files of the work, or why it is not done here.
    `read` reads the work, `do` does it and returns its files."""
    if wanted != identity():
        return _answer("refused", f"it has minigts {identity()}, but the campaign was made by {wanted}")
    work = read()
    try:
        provider = registry.make(work.provider, Path(), work.time)
        if isinstance(provider, Exports) and not provider.is_built():
            return _answer("lacks-parts")
        if lacking := provider.missing():
            return _answer("refused", "; ".join(lacking))
        return Answer(kind="done", machine=machine(), files=dict(do(work)))
    except EnvironmentLacks as error:
        return _answer("refused", str(error))
    except (MinigtsError, ExceptionGroup, OSError) as error:
        why = str(error) or type(error).__name__
        return _answer("wrong" if isinstance(error, InputError) else "failed", why)


def _answer(kind: Literal["failed", "wrong", "refused", "lacks-parts"], why: str = "") -> Answer:
    return Answer(kind=kind, why=why, machine=machine())


def measure_job(job: Job, campaign_id: str, say: Progress, on_progress: run.OnProgress) -> dict[str, str]:
    """Take the job's samples in a new lab; return the files that it adds to its run. Raises what a lab raises."""
    remove_labs(campaign_id, True)
    with tempfile.TemporaryDirectory(prefix="minigts-job-") as place, _lab(job, campaign_id, say) as lab:
        directory = Path(place)
        manifests.write(directory, job.manifest)
        if job.describes:
            run_folders.describe_lab([directory], lab, say, fresh=True)
        watched = lab_course.Watched(lab, on_progress)
        run.take(directory, lab.provider, RealLabControl(lab, say), job.samples, watched)
        watched.keep(directory, f"job-{job.number}")
        found = [manifests.FILE, LOG, *([CERTIFICATE] if job.describes else [])]
        files = {name: read_text(inside(directory, name)) for name in found}
        for path in sorted((directory / RAW).glob("*.json")):
            files[f"{RAW}/{path.name}"] = read_text(path)
        files.update(courses.files_of(directory))
        return files


def topic(campaign_id: str) -> str:
    """The Dask topic on which workers of a campaign report their progress."""
    return f"minigts-{campaign_id}"


def saying(campaign_id: str) -> Progress:
    """A function that sends a line for whoever watches on the campaign's topic. Any thread may call it."""
    report = _reporting(campaign_id)
    return lambda line: report({"line": line})


def _reporting(campaign_id: str) -> Callable[[Mapping[str, int | str]], None]:
    """A function that sends a report on the campaign's topic; outside a Dask worker it does nothing."""
    try:
        from distributed import get_worker  # noqa: PLC0415

        worker = get_worker()
    except ValueError:
        return lambda _: None
    return lambda told: worker.log_event(topic(campaign_id), told)


def telling(campaign_id: str, number: int) -> run.OnProgress:
    """A function that reports on the campaign's topic how many samples of the job are done, at most once a second.
    Outside a Dask worker it reports nothing."""
    told_s = -math.inf
    report = _reporting(campaign_id)

    def tell(at: run.RunProgress) -> None:
        nonlocal told_s
        now_s = time.monotonic()
        if now_s < told_s + TOLD_EVERY_S:
            return
        told_s = now_s
        report({"job": number, "done": at.done})

    return tell


def lab_name(campaign_id: str, number: int | str, process: int | str) -> str:
    """The name of a job's lab, by which `remove_labs` finds it."""
    return f"{PREFIX}-{campaign_id}-{number}-{where_processes_are()}-{process}"


@contextmanager
def _lab(job: Job, campaign_id: str, say: Progress) -> Iterator[Lab]:
    name = lab_name(campaign_id, job.number, os.getpid())
    made = overlays.lab_for(job.manifest.plan, job.manifest.provider, name, [job.overlay], say)
    try:
        yield made
    finally:
        labs.down(made)


def remove_labs(campaign_id: str, of_the_dead: bool) -> str:
    """Take down labs of the campaign's jobs on this machine: all, or with `of_the_dead` those whose process is gone.
    Return the errors in words; empty when there was none."""
    wrong = []
    for each in labs.all_labs():
        prefix, campaign, _, where, process = [*each.name.split("-"), *5 * [""]][:5]
        ours = (prefix, campaign, where) == (PREFIX, campaign_id, where_processes_are())
        if not ours or (of_the_dead and (PROC / process.lstrip("0")).exists()):
            continue
        try:
            labs.down(lab_named(each.name))
        except (MinigtsError, ExceptionGroup, OSError) as error:
            parts = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            wrong.append(f"{each.name}: {', '.join(map(str, parts))}")
    return "; ".join(wrong)


def receive(name: str, offset: int, data: bytes) -> str:
    """Write a piece of the shipped parts to a file, for `unpack`."""
    place = _shipped(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        file.write(data)
    return ""


def unpack(name: str, sha256: str, provider: str, labs_time: Literal["real", "virtual"]) -> str:
    """Unpack the shipped parts if their digest is `sha256`; return the error in words, empty when there was none."""
    place = _shipped(name)
    try:
        made = registry.make(provider, Path(), labs_time)
        assert isinstance(made, Exports)  # only such a provider lacks parts
        made.unpack(str(place), sha256, _silent)
    except MinigtsError as error:
        return str(error)
    finally:
        place.unlink(missing_ok=True)
    return ""


def _shipped(name: str) -> Path:
    return paths.cache_root() / f"shipped-{name}-{os.getpid()}"


def _silent(_text: str) -> None:
    pass

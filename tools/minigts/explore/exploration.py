"""Runs an exploration: takes the seeds that its folder lacks, in this process or by an engine's workers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import minigts
from minigts.cluster import dispatch
from minigts.cluster import engine as engines
from minigts.cluster.shares import JobShare
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiments import provenance, run_folders
from minigts.explore import course, folder, host_files, on_worker, seed_labs
from minigts.explore import faults as plans
from minigts.explore import outcome as outcomes
from minigts.explore.kinds import OF_DISKS, OF_OWN_KERNELS
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program
from minigts.explore.work import Exploration, SeedOfWork, whole_seed_of_work
from minigts.language import documents
from minigts.language.problems import list_names
from minigts.machine.progress import Progress
from minigts.providers import registry, supported
from minigts.providers.base import DiskFaults, Forks, Power, Prepares, Provider, Restarts
from minigts.results import gate
from minigts.results.gate import Trusted
from minigts.session import bring_up
from minigts.topology.plan.plan import Plan

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile

NOT_AGAIN = "in real time a seed draws the same faults again, but not the same events: they cannot be had again"


class Watcher(Protocol):
    """Receives the progress of an exploration."""

    def step(self, line: str) -> None:
        """Take a step of the present seed, or of the engine's start."""

    def note(self, line: str) -> None:
        """Take a line for the user."""

    def take_outcome(self, outcome: Outcome, done: int, total: int) -> None:
        """Take the outcome of a seed, as soon as it is kept."""


@dataclass(frozen=True)
class ExplorationRequest:
    """What is to be explored, as the user asks for it; the plan is read already."""

    topology: str
    plan: Plan
    provider: str
    test: Program
    first: int
    last: int
    longest_s: float
    faults: str = ""
    """The text of the file with the plan of faults."""
    faults_file: str = "faults.yaml"
    """Its name in messages."""
    overlay: str | None = None
    forks: bool = False
    """Whether one lab is brought up, and each seed is a fork of it."""
    tails: int = 0
    """How many tails each seed has."""


def check_exploration(asked: ExplorationRequest, say: Progress) -> Trusted[Exploration]:
    """The exploration, once all is checked that can be before a lab is started; parts of labs are built now. Raises
    InputError, EnvironmentLacks."""
    provider = registry.make(asked.provider, Path(), asked.plan.time)
    faults = plans.parse(asked.faults, asked.faults_file, asked.plan) if asked.faults else None
    if faults is not None:
        _require_possible(faults, provider, asked.plan)
        asked = replace(asked, plan=plans.plan_with_caches(asked.plan, faults))
    supported.require(asked.plan, provider.name, provider.supports)
    for option, wanted in (("--forks", asked.forks), ("--tails", asked.tails)):
        if wanted and not isinstance(provider, Forks):
            raise EnvironmentLacks(f"{option}: labs of uml in virtual time fork, and no others")
    if asked.tails and not (asked.faults and asked.test.is_pytest):
        raise InputError("--tails: tails begin at a fault of a seed, and go on with a test of pytest's: name --faults")
    bring_up.ready(bring_up.Request(asked.plan, asked.provider, _a_name(), asked.overlay))
    if isinstance(provider, Prepares):
        provider.prepare(say)
    made = Exploration(
        minigts=minigts.__version__,
        commit=run_folders.commit(),
        topology=asked.topology,
        plan=asked.plan,
        provider=asked.provider,
        overlay=asked.overlay,
        test=asked.test,
        faults=asked.faults,
        first=asked.first,
        last=asked.last,
        longest_s=asked.longest_s,
        parts=parts_here(provider, asked.plan, say),
        started=datetime.now(UTC).isoformat("T", "seconds"),
        host_files=host_files.kept_files(asked.plan),
        forks=asked.forks,
        tails=asked.tails,
    )
    return gate.own(made)


def parts_here(provider: Provider, plan: Plan, say: Progress) -> dict[str, str]:
    """The digests of the parts of a plan's labs, such as the image, as they are on this machine."""
    return {word: part.sha256 for word, part in provenance.parts(provider, say, plan).items()}


def _a_name() -> str:
    return on_worker.lab_name(secrets.token_hex(3), 0)


def _require_possible(faults: plans.Faults, provider: Provider, plan: Plan) -> None:
    """Raise EnvironmentLacks for a kind of fault that the provider's hosts cannot have, and light hosts cannot."""
    if plan.sharing and (found := [kind for kind in (*OF_OWN_KERNELS, "preempt", *OF_DISKS) if kind in faults.kinds]):
        shared = f"{min(plan.sharing)} is a light host, which shares its kernel"
        raise EnvironmentLacks(f"{shared}: leave out {list_names(found)}")
    if faults.kinds.keys() & {*OF_DISKS} and not isinstance(provider, DiskFaults):
        raise EnvironmentLacks(f"disks of provider {provider.name} do not fail: leave {', '.join(OF_DISKS)} out")
    if isinstance(provider, Power) and isinstance(provider, Restarts):
        return
    if found := [kind for kind in OF_OWN_KERNELS if kind in faults.kinds]:
        raise EnvironmentLacks(
            f"hosts of {provider.name} have no power, clock or disk of their own: leave out {list_names(found)}"
        )


def run(
    place: Path,
    allowed: Trusted[Exploration],
    engine: str | EngineFile | None,
    watcher: Watcher,
    share: JobShare | None = None,
) -> None:
    """Take every seed that the folder lacks, or those of a share of all. However it ends, the seeds that have ended are
    kept. Raises MinigtsError when an engine is lost, and InputError when the test cannot be started."""
    exploration = allowed.content
    first, last = exploration.first, exploration.last
    own = {seed for seed in range(first, last + 1) if share is None or share.has(seed - first + 1)}
    left = [seed for seed in folder.missing(place, exploration) if seed in own]
    if exploration.plan.time == "real":
        watcher.note(NOT_AGAIN)
    jobs = [whole_seed_of_work(allowed, seed) for seed in left]
    if not jobs:
        return
    done = len(own) - len(left)
    kept = _Kept(place, done, done + len(left), watcher)
    if engine is None:
        try:
            _in_turn(jobs, kept, watcher)
        finally:
            seed_labs.end_origins()
    else:
        _by_workers(jobs, kept, engine, watcher)


class _Kept:
    """Keeps what comes of seeds, and tells the watcher."""

    def __init__(self, place: Path, done: int, total: int, watcher: Watcher) -> None:
        self._place, self._done, self._total, self._watcher = place, done, total, watcher

    def __call__(self, job: SeedOfWork, files: Mapping[str, str]) -> None:
        for each in on_worker.split_answer(files):
            outcome = documents.model(each[on_worker.OUTCOME], Outcome)
            self.take(outcome, {name: text for name, text in each.items() if name != on_worker.OUTCOME})

    def take(self, outcome: Outcome, files: Mapping[str, str]) -> None:
        folder.keep(self._place, outcome, files)
        self._done += not outcome.tail
        self._watcher.take_outcome(outcome, self._done, self._total)


def not_run(seed: int, why: str, real_s: float = 0.0) -> Outcome:
    """The outcome of a seed whose lab could not be run."""
    return Outcome(seed=seed, verdict="error", why=outcomes.alike(why), detail=why, real_s=real_s)


def _in_turn(jobs: Sequence[SeedOfWork], kept: _Kept, watcher: Watcher) -> None:
    campaign_id = secrets.token_hex(3)
    for job in jobs:
        begun = time.monotonic()
        try:
            taken = course.take(job, on_worker.lab_name(campaign_id, job.number), watcher.step)
        except EnvironmentLacks:
            raise
        except (MinigtsError, ExceptionGroup) as error:
            kept.take(not_run(job.number, str(error), round(time.monotonic() - begun, 3)), {})
        else:
            for each in (*taken.tails, taken):
                kept.take(each.outcome, each.files)


def _by_workers(jobs: Sequence[SeedOfWork], kept: _Kept, engine: str | EngineFile, watcher: Watcher) -> None:
    def lose(job: SeedOfWork, why: str) -> None:
        kept.take(not_run(job.number, why), {})

    with engines.open_engine(engine, watcher.step) as opened:
        dispatch.run_jobs(opened, jobs, kept, lose, watcher.step)

"""Runs a campaign: reads experiments, takes their samples lab by lab or by an engine's workers, and writes the tables.

A campaign has one or several experiments, and each experiment one lab, or one for each value of a sweep. A `Watcher` is
told of the progress; the results are in results folders.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from minigts import lab as labs
from minigts import overlays
from minigts.artifacts import kernels
from minigts.artifacts.builders import BUILDING, PARTS
from minigts.cluster import dispatch, in_turn, merge_results, merge_shares
from minigts.cluster import engine as engines
from minigts.cluster.jobs import Job, record_jobs, split
from minigts.cluster.merge_shares import MergedRuns
from minigts.cluster.shares import JobShare
from minigts.errors import CommandFailed, HostFailed, InputError
from minigts.experiments import decidable, prepare, run, run_folders, trust
from minigts.experiments.prepare import Prepared
from minigts.experiments.run import OnProgress, RunOutcome
from minigts.lab import Lab, link_states
from minigts.language.figures import duration
from minigts.language.problems import list_names
from minigts.machine import times_seen
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT, course, registry
from minigts.providers.base import Exports, Prepares
from minigts.report.read import is_sweep, labs_of
from minigts.results import gate, sweeps
from minigts.results import manifest as manifests
from minigts.results.gate import Trusted
from minigts.results.schema import REPORT, SAMPLES
from minigts.session import bring_up, first_figure
from minigts.session.first_figure import Piece
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile


KEPT_OF_JOBS = "what jobs have brought is kept"


class CampaignWatcher(Protocol):
    """Receives the progress of a campaign."""

    def note(self, line: str) -> None:
        """Take a line for the user."""

    def outcome(self, outcome: RunOutcome, directory: Path) -> None:
        """Take the outcome of the run in `directory`, whose tables have been written."""

    def preparing(self) -> AbstractContextManager[Progress]:
        """A context in which a lab or an engine is brought up; its value is called with each step."""
        ...

    def measuring(self) -> AbstractContextManager[tuple[Progress, OnProgress]]:
        """A context in which samples are taken; its values are called with each step, and with the progress."""
        ...


@dataclass(frozen=True)
class Means:
    """The labs and workers that a campaign uses."""

    provider: str = DEFAULT
    lab: str | None = None
    """The name of a lab that is up; None: a new lab for each topology, which is taken down at the end."""
    keep: bool = False
    """Whether new labs stay up at the end."""
    on: str | None = None
    """The engine whose workers take the samples; None: this process takes them."""
    share: JobShare | None = None
    """The share of the jobs that is to be done; None: all."""


@dataclass(frozen=True)
class CampaignRequest:
    """The campaign to run: experiments, or a results folder to resume."""

    files: tuple[Path, ...] = ()
    resume: Path | None = None
    paper: bool = False
    quick: bool = False
    only: tuple[str, ...] = ()
    time: Time | None = None
    replicates: int | None = None
    trusted: bool = False
    """With `resume`: allow a run that was not begun on this machine and copies files or opens gateways."""
    kernel: str | None = None
    """The kernel of the labs, in place of their topologies'; None: that."""
    means: Means = Means()


@dataclass(frozen=True)
class CheckedCampaign:
    """A campaign whose whole input has been checked; nothing has been started."""

    prepared: tuple[Prepared, ...]
    means: Means
    engine: str | EngineFile | None
    directories: tuple[Path, ...]
    """The results folders of a resumed campaign; a new one gets its folders when it begins."""
    allowed: Trusted[tuple[Prepared, ...]] | None
    """What may be measured; None for a `dry` run, which measures nothing."""
    piece: Piece | None = None
    """What is measured in real time while the parts of labs are built; None: nothing."""

    def measure(self, results: Path, watcher: CampaignWatcher) -> CampaignResult:
        """Run the campaign, in new folders below `results` unless it is resumed; see `measure`. Raises EnvironmentLacks
        when the memory does not suffice, and what labs and engines raise."""
        if self.means.lab is None and (self.means.on is None or engines.is_here(self.means.on)):
            for line in require_room(self.prepared, self.means.provider):
                watcher.note(line)
        if self.allowed is None:
            raise InputError("run: a dry run measures nothing")
        if self.directories:
            return measure(self.directories, self.allowed, self.means, watcher, self.engine)
        first = None if self.piece is None else _first_figure(self.piece, results, watcher)
        with begin_folders(results, self.allowed, self.means.provider) as directories:
            return replace(measure(directories, self.allowed, self.means, watcher, self.engine), first=first)


@dataclass(frozen=True)
class CampaignResult:
    """The result of a campaign."""

    folder: Path
    """The folder of a single run, the sweep, or the campaign."""
    complete: bool
    """Whether every sample has a result."""
    first: Path | None = None
    """The folder of the first figure, in real time; None where nothing had to be built."""


@contextmanager
def open_campaign(asked: CampaignRequest, note: Progress, *, dry: bool = False) -> Iterator[CheckedCampaign]:
    """Read and check a campaign; `note` gets what is left out. Within the context no other run uses a folder that is
    resumed, unless it is a `dry` run. Raises InputError with every problem, EnvironmentLacks for an engine that is not
    available.
    """
    means = asked.means
    _require_sense(asked)
    engine = None if means.on is None else engines.check_engine(means.on)
    time = asked.time
    if means.lab is not None:
        time = time or _time_of(labs.checked_name(means.lab))
    directories: tuple[Path, ...] = ()
    allowed: Trusted[tuple[Prepared, ...]] | None = None
    with ExitStack() as stack:
        if asked.resume is not None:
            if not dry:
                stack.enter_context(run_folders.lock_folder(asked.resume))
            directories, prepared = run_folders.reopen(asked.resume)
            means = replace(means, provider=_provider_again(directories, means.provider))
            found = trust.reopen_runs(asked.resume, directories, prepared, means.provider)
            if not dry:
                allowed = found.allow(trust.wants(prepared, means.provider), trusted=asked.trusted)
                if asked.trusted:  # so that it is asked once
                    run_folders.adopt(directories, prepared, means.provider)
        else:
            prepared = prepare.prepare_all(
                prepare.files(asked.files),
                paper=asked.paper,
                quick=asked.quick,
                only=asked.only,
                time=time,
                provider=means.provider,
                replicates=asked.replicates or (1 if means.lab is not None or means.keep else None),
                kernel=asked.kernel,
            )
            allowed = gate.own(prepared)
            for line in prepare.skipped_folders(asked.files):
                note(line)
        chances = dict.fromkeys(chance for each in prepared if (chance := each.chance) is not None)
        for line in (
            *chances,
            *prepare.left_out_in_words(prepared),
            *decidable.too_few_in_words(prepared, means.provider),
        ):
            note(line)
        _require_possible(prepared, means)
        for line in dict.fromkeys(line for each in prepared for line in kernels.remarks(each.plan)):
            note(line)
        by_itself = all(each is None for each in (asked.kernel, means.lab, means.on, means.share))
        files = prepare.files(asked.files) if by_itself else ()
        piece = first_figure.piece(files, prepared, means.provider, asked.only)
        yield CheckedCampaign(prepared, means, engine, directories, allowed, piece)


def _first_figure(piece: Piece, results: Path, watcher: CampaignWatcher) -> Path | None:
    """Build the parts of labs, and measure the piece meanwhile; return its folder, None where it has failed."""
    provider = registry.make(piece.provider, Path(), "virtual")
    assert isinstance(provider, Prepares), "first_figure.piece has looked"
    measured: list[Path | None] = []

    def meanwhile(say: Progress) -> None:
        folder = first_figure.measure(piece, results, say)
        measured.append(folder)
        if folder is not None:
            report = folder / REPORT
            watcher.note(f"the first figure, in real time on Debian's kernel: {report if report.exists() else folder}")
            say("the exact one comes once the rest is built")

    try:
        with watcher.preparing() as say:
            provider.prepare(say, partial(meanwhile, say))
    except KeyboardInterrupt as interrupted:
        if measured:
            interrupted.add_note(
                f"labs in real time can be brought up: minigts up TOPOLOGY --time real; minigts setup {piece.provider} "
                "builds what virtual time needs, from its beginning"
            )
        raise
    return measured[0] if measured else None


def missing_builds(prepared: Sequence[Prepared], means: Means) -> tuple[str, ...]:
    """A line for all that is built before the first sample, once, with how long it took here if that is known."""
    if means.lab is not None:
        return ()
    wanted = prepare.overlays_by_plan(prepared)
    made = [registry.make(means.provider, Path(), time) for time in dict.fromkeys(plan.time for plan, _ in wanted)]
    parts = [
        f"the parts of the hosts are built first, once: {_building_time(PARTS, 'a kernel takes ten minutes or more')}"
        for each in made
        if isinstance(each, Exports) and not each.is_built()
    ]
    names = dict.fromkeys(name for _, laid in wanted for each in laid if (name := overlays.find(each).missing_build))
    programs = [f"the {name} are built first, once: {_building_time(name, 'some minutes')}" for name in names]
    return (*dict.fromkeys(parts), *programs)


def _building_time(name: str, unseen: str) -> str:
    took_s = times_seen.known_times().took_s(BUILDING, name)
    return unseen if took_s is None else f"that took {duration(took_s)} here"


@contextmanager
def begin_folders(results: Path, allowed: Trusted[tuple[Prepared, ...]], provider: str) -> Iterator[tuple[Path, ...]]:
    """Make new results folders, which no other run uses within the context."""
    directories = run_folders.begin(results, allowed.content, provider)
    with run_folders.lock_folder(folder_of(directories)):
        yield directories


def folder_of(directories: Sequence[Path]) -> Path:
    """The folder of a single run, the sweep, or the campaign that these directories are of."""
    return directories[0] if len(directories) == 1 else Path(os.path.commonpath(directories))


def require_room(prepared: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """Raise EnvironmentLacks when something is missing for one of the labs, such as a system package, or memory for the
    largest of its overlays; return notes for the user, such as on running as root."""
    wanted = prepare.overlays_by_plan(prepared)
    for time in dict.fromkeys(plan.time for plan, _ in wanted):
        labs.require_parts(registry.make(provider, Path(), time))
    for plan, laid in wanted:
        bring_up.require_room(plan, registry.make(provider, Path(), plan.time), laid)
    return bring_up.root_note(registry.make(provider, Path()))


def measure(
    directories: Sequence[Path],
    allowed: Trusted[tuple[Prepared, ...]],
    means: Means,
    watcher: CampaignWatcher,
    engine: str | EngineFile | None = None,
) -> CampaignResult:
    """Take every missing sample, in this process or by the engine's workers, and write the tables; the caller keeps
    other runs out. A failed lab ends a single run; in a campaign of several it is noted, and the others run on.
    """
    folder, prepared = folder_of(directories), allowed.content
    watcher.note(_how_much(prepared))
    if means.share is not None:
        return CampaignResult(folder, _share(folder, directories, means, watcher, engine))
    if engine is None:
        complete = _by_labs(folder, directories, prepared, means, watcher)
    else:
        complete = _by_workers(folder, directories, engine, watcher)
    _write_sweeps(folder)
    return CampaignResult(folder, complete)


def merge(shares: Sequence[Path], results: Path) -> MergedRuns:
    """Put the shares of a campaign together, in a new folder below `results`; see `merge_shares.merge_runs`."""
    merged = merge_shares.merge_runs(shares, results)
    _write_sweeps(merged.folder)
    return merged


def _write_sweeps(folder: Path) -> None:
    for each in dict.fromkeys((folder, *folder.iterdir())):
        if is_sweep(each):
            sweeps.write_together(each, labs_of(each))


@contextmanager
def lab_for(plan: Plan, means: Means, say: Progress, laid: Collection[str] = ()) -> Iterator[Lab]:
    """A lab of `plan`: the one that `means.lab` names, or a new one, without overlay, on which these are to be joined;
    it is taken down at the end unless `means.keep` is set.

    Raises InputError when the named lab has other hosts, links, groups or time, or has links that are cut or changed:
    the results would be of another topology than their manifest says.
    """
    if means.lab is not None:
        yield _lent(plan, labs.open_lab(means.lab), say)
        return
    name = f"{plan.name}-{os.getpid()}"
    if means.keep:
        yield overlays.lab_for(plan, means.provider, name, laid, say)
        return
    with bring_up.bare(plan, means.provider, name, say, laid) as made:
        yield made


def _lent(plan: Plan, found: Lab, say: Progress) -> Lab:
    if (found.plan.hosts, found.plan.links, found.plan.groups) != (plan.hosts, plan.links, plan.groups):
        raise InputError(f"lab {found.name} is of topology {found.plan.name}; the experiment is for {plan.name}")
    if found.time != plan.time:
        raise InputError(f"lab {found.name} is in {found.time} time; the run is in {plan.time} time")
    record = found.read_record()
    if mend := link_states.how_to_mend(found.plan, record):
        is_cut = bool(link_states.cut_links(found.plan, record))
        kind, verb = ("cut", "make them whole") if is_cut else ("changed", "set them as declared")
        commands = ", ".join(mend.values())
        raise InputError(f"lab {found.name} has links that are {kind} ({', '.join(mend)}); {verb} first: {commands}")
    if record.settings != labs.DECLARED:
        say("an interrupted experiment has left links set: setting them as declared")
        labs.set_for_experiment(found, labs.DECLARED)
    return found


def _require_sense(asked: CampaignRequest) -> None:
    """Raises InputError for options that exclude each other."""
    course.course_request()
    if bool(asked.files) == bool(asked.resume):
        raise InputError("run: name an experiment, as in experiments/multihop.yaml, or --resume a results folder")
    _refuse_together(("--paper", asked.paper), ("--quick", asked.quick))
    _refuse_together(("--time", asked.time), ("--resume", asked.resume))  # a run keeps the time in which it began
    _refuse_together(("--replicates", asked.replicates), ("--resume", asked.resume))
    _refuse_together(("--kernel", asked.kernel), ("--resume", asked.resume))
    _refuse_together(("--on", asked.means.on), ("--lab", asked.means.lab))
    _refuse_together(("--on", asked.means.on), ("--keep", asked.means.keep))
    _refuse_together(("--share", asked.means.share), ("--lab", asked.means.lab))
    _refuse_together(("--share", asked.means.share), ("--keep", asked.means.keep))


def _refuse_together(*options: tuple[str, object]) -> None:
    """Raises InputError when more than one of the options is set."""
    if sum(bool(value) for _, value in options) > 1:
        raise InputError(f"run: {' and '.join(name for name, _ in options)} exclude each other")


def _require_possible(prepared: Sequence[Prepared], means: Means) -> None:
    """Raises InputError for a provider that lacks the time of a lab to be made, for real time with `--on`, whose labs
    share a machine, and for replicates with `--lab` or `--keep`, since each has a lab of its own."""
    for plan, _ in prepare.overlays_by_plan(prepared) if means.lab is None else ():
        registry.make(means.provider, Path(), plan.time)
    real = dict.fromkeys(each.experiment.name for each in prepared if each.samples and each.plan.time == "real")
    if means.on is not None and real:
        raise InputError(
            f"run: --on: {', '.join(real)} would run in real time, in which labs on one machine disturb each other: "
            "add --time virtual, or leave out --on"
        )
    if means.share is not None and real:
        raise InputError(
            f"run: --share: {', '.join(real)} would run in real time, in which each machine has figures of its own: "
            "add --time virtual, or leave out --share"
        )
    several = dict.fromkeys(
        each.experiment.name for each in prepared if each.samples and each.experiment.replicates > 1
    )
    option = "--lab" if means.lab is not None else "--keep" if means.keep else ""
    if several and option:
        raise InputError(
            f"run: {option}: each replicate of {', '.join(several)} has a lab of its own: leave out {option}, or add "
            "--replicates 1"
        )


def _time_of(name: str) -> Time | None:
    """The time of a lab; None when there is no such lab, which `lab_for` reports."""
    return next((each.time for each in labs.all_labs() if each.name == name), None)


def _provider_again(directories: Sequence[Path], asked: str) -> str:
    """The provider of a resumed run: the one on which it was begun. Raises InputError where the user asked for another
    one (DEFAULT counts as no request), or where the folders have several."""
    begun_on = list(dict.fromkeys(manifests.read(each).provider for each in directories))
    if asked in begun_on or (asked == DEFAULT and len(begun_on) == 1):
        return asked if asked in begun_on else begun_on[0]
    raise InputError(f"run: --provider {asked}: the run was begun on {list_names(begun_on)}, and continues there")


def _how_much(prepared: Sequence[Prepared]) -> str:
    names = dict.fromkeys(each.experiment.name for each in prepared)
    seconds = sum(each.seconds for each in prepared)
    several = f", {len(prepared)} labs" if len(prepared) > len(names) else ""
    clock = ", by the labs' own clock" if all(each.time == "virtual" for each in prepared) else ""
    return f"{', '.join(names)}{several}: {duration(seconds)} of measuring{clock}"


def _by_labs(
    folder: Path, directories: Sequence[Path], prepared: Sequence[Prepared], means: Means, watcher: CampaignWatcher
) -> bool:
    """Measure all runs, those of one topology in one lab; return whether every sample has a result."""
    complete, runs = True, dict(zip(directories, prepared, strict=True))
    with _telling_how_to_resume(folder, "nothing that was measured is lost", watcher):
        replicated = [directory for directory, each in runs.items() if each.samples and each.experiment.replicates > 1]
        shared = prepare.directories_by_plan(
            [each for each in directories if each not in replicated],
            [each for each in prepared if not each.samples or each.experiment.replicates == 1],
        )
        for number, (plan, own) in enumerate(shared, start=1):
            names = ", ".join(each.name for each in own)
            if len(shared) > 1:
                watcher.note(f"lab {number} of {len(shared)}: {names}")
            laid = dict.fromkeys(sample.overlay for directory in own for sample in runs[directory].samples)
            try:
                complete &= _in_one_lab(plan, own, laid, means, watcher)
            except (HostFailed, CommandFailed) as error:
                if len(directories) == 1:
                    raise
                watcher.note(f"minigts: {names}: {error}")
                complete = False
        if replicated:
            complete &= _replicates(folder, replicated, watcher)
    for directory, each in runs.items():
        # No sample was missing, or the lab failed before its tables could be written.
        if not each.samples or not (directory / SAMPLES).exists():
            watcher.outcome(run.finish(directory), directory)
    return complete


def _in_one_lab(
    plan: Plan, directories: Sequence[Path], laid: Collection[str], means: Means, watcher: CampaignWatcher
) -> bool:
    """Measure the runs of one topology in one lab, over these overlays; return whether every sample has a result."""
    with ExitStack() as stack:
        with watcher.preparing() as say:
            lab = stack.enter_context(lab_for(plan, means, say, laid))
            run_folders.record_labs(directories, lent=means.lab is not None)
            run_folders.describe_lab(directories, lab, say, fresh=means.lab is None)
        with watcher.measuring() as (step, on_progress):
            outcomes = run_folders.take(directories, lab, step, on_progress)
    return _told(watcher, directories, outcomes)


def _replicates(folder: Path, directories: Sequence[Path], watcher: CampaignWatcher) -> bool:
    """Measure replicates one after the other, each in its own lab; return whether every sample has a result."""
    with watcher.measuring() as (step, on_progress):
        in_turn.run_in_turn(folder, tuple(split(folder, directories)), step, on_progress)
    return _told(watcher, directories, map(run.finish, directories))


def _by_workers(folder: Path, directories: Sequence[Path], engine: str | EngineFile, watcher: CampaignWatcher) -> bool:
    """Let an engine's workers measure all runs; return whether every sample has a result."""
    _build_parts(directories, watcher)
    jobs = tuple(split(folder, directories))
    record_jobs(folder, directories, jobs)
    with _telling_how_to_resume(folder, KEPT_OF_JOBS, watcher):
        _let_workers_do(folder, jobs, engine, watcher)
    return _told(watcher, directories, map(run.finish, directories))


def _build_parts(directories: Sequence[Path], watcher: CampaignWatcher) -> None:
    with watcher.preparing() as say:
        for provider in dict.fromkeys(manifests.read(each).provider for each in directories):
            made = registry.make(provider, Path(), "virtual")
            if isinstance(made, Prepares):
                made.prepare(say)


def _let_workers_do(folder: Path, jobs: Sequence[Job], engine: str | EngineFile, watcher: CampaignWatcher) -> None:
    lost: list[str] = []

    def lose(job: Job, why: str) -> None:
        lost.append(f"minigts: {job.name}: {why}")

    with ExitStack() as stack:
        with watcher.preparing() as say:
            begun_engine = stack.enter_context(engines.open_engine(engine, say))
        say, on_progress = stack.enter_context(watcher.measuring())
        dispatch.run_jobs(begun_engine, jobs, partial(merge_results.keep, folder), lose, say, on_progress)
    for each in lost:
        watcher.note(each)


def _share(
    folder: Path,
    directories: Sequence[Path],
    means: Means,
    watcher: CampaignWatcher,
    engine: str | EngineFile | None,
) -> bool:
    """Do one share of the jobs; return whether every sample of it has a result. Tables are derived when the shares are
    merged."""
    share = means.share
    assert share is not None, "the caller has looked"
    _build_parts(directories, watcher)
    with watcher.preparing() as say:
        run_folders.note_parts(directories, say)
    jobs = tuple(job for job in split(folder, directories) if share.has(job.number))
    watcher.note(f"share {share}: {len(jobs)} jobs with {sum(job.size for job in jobs)} samples")
    with _telling_how_to_resume(folder, KEPT_OF_JOBS, watcher, f" --share {share}"):
        if engine is not None:
            _let_workers_do(folder, jobs, engine, watcher)
        else:
            with watcher.measuring() as (step, on_progress):
                in_turn.run_in_turn(folder, jobs, step, on_progress)
    return not any(share.has(job.number) for job in split(folder, directories))


def _told(watcher: CampaignWatcher, directories: Sequence[Path], outcomes: Iterable[RunOutcome]) -> bool:
    """Tell the watcher each outcome as it is known; return whether every sample has a result."""
    complete = True
    for directory, outcome in zip(directories, outcomes, strict=True):
        watcher.outcome(outcome, directory)
        complete &= not outcome.failed
    return complete


@contextmanager
def _telling_how_to_resume(folder: Path, kept: str, watcher: CampaignWatcher, options: str = "") -> Iterator[None]:
    try:
        yield
    except BaseException:
        watcher.note(f"minigts: {kept}; go on with: minigts run --resume {folder}{options}")
        raise

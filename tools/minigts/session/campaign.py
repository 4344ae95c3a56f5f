"""A campaign: experiments read, their samples taken lab by lab or by an engine's workers, and every table written.

A campaign has one experiment or several, and each of them one lab, or one for each value of a sweep. Whoever asks for
it is a `Watcher`, who is told what goes on; what came of it lies in results folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from minigts import lab as labs
from minigts.cluster import doing, gathering, in_turn
from minigts.cluster import engine as engines
from minigts.cluster.jobs import split
from minigts.errors import CommandFailed, HostFailed, InputError
from minigts.experiments import campaign, decidable, run, trust
from minigts.experiments.campaign import Prepared
from minigts.experiments.run import OnProgress, Outcome
from minigts.lab import Lab, Progress, links
from minigts.language.figures import duration
from minigts.language.problems import listed
from minigts.providers import DEFAULT, registry
from minigts.providers.base import Prepares
from minigts.report.read import is_sweep, labs_of
from minigts.results import manifest as manifests
from minigts.results import sweeps
from minigts.results.schema import SAMPLES
from minigts.session import bring_up
from minigts.topology.plan import Plan
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile


class Watcher(Protocol):
    """Who is told how a campaign goes."""

    def note(self, line: str) -> None:
        """A line to be read."""

    def outcome(self, outcome: Outcome, directory: Path) -> None:
        """What the run in `directory` came to; its tables are written."""

    def preparing(self) -> AbstractContextManager[Progress]:
        """Within it a lab or an engine is brought up; its value is told each step."""
        ...

    def measuring(self) -> AbstractContextManager[tuple[Progress, OnProgress]]:
        """Within it samples are taken; its values are told each step, and how far it is."""
        ...


@dataclass(frozen=True)
class Means:
    """By what a campaign is measured."""

    provider: str = DEFAULT
    lab: str | None = None
    """A lab that is up, by its name; None: a lab for each topology, which is taken down at the end."""
    keep: bool = False
    """The labs stay up."""
    on: str | None = None
    """The engine whose workers take the samples; None: this process takes them."""


@dataclass(frozen=True)
class Asked:
    """What is to be run: experiments, or a results folder whose run was broken off."""

    files: tuple[Path, ...] = ()
    resume: Path | None = None
    paper: bool = False
    quick: bool = False
    only: tuple[str, ...] = ()
    time: Time | None = None
    replicates: int | None = None
    trusted: bool = False
    """With `resume`: also where it was not begun here, and takes files or opens ways."""
    means: Means = Means()


@dataclass(frozen=True)
class Opened:
    """A campaign, all of whose input has been checked; nothing has been started."""

    prepared: tuple[Prepared, ...]
    means: Means
    engine: str | EngineFile | None
    directories: tuple[Path, ...]
    """Of one that is resumed; a new one gets its folders when it begins."""

    def measure(self, results: Path, watcher: Watcher) -> Measured:
        """Measure all, in new folders below `results` unless it is resumed; see `measure`. Raises EnvironmentLacks when
        there is not the memory, what labs and engines raise, and what a single experiment's lab does."""
        if self.means.lab is None and (self.means.on is None or engines.is_here(self.means.on)):
            for line in require_room(self.prepared, self.means.provider):
                watcher.note(line)
        trust.remember(self.prepared, self.means.provider)
        if self.directories:
            return measure(self.directories, self.prepared, self.means, watcher, self.engine)
        with begun(results, self.prepared, self.means.provider) as directories:
            return measure(directories, self.prepared, self.means, watcher, self.engine)


@dataclass(frozen=True)
class Measured:
    """What came of a campaign."""

    folder: Path
    """The run's own, or that of all: the sweep's or the campaign's."""
    complete: bool
    """Whether every sample has a result."""


@contextmanager
def opened(asked: Asked, note: Callable[[str], None], *, dry: bool = False) -> Iterator[Opened]:
    """Read what is asked, and say what is left out of it. Within the context no other run is in a folder that is
    resumed; a `dry` look at it is let in. Raises InputError with every problem, EnvironmentLacks for an engine that
    cannot be had.
    """
    means = asked.means
    _require_sense(asked)
    engine = None if means.on is None else engines.checked(means.on)
    time = asked.time
    if means.lab is not None:
        time = time or _time_of(labs.checked_name(means.lab))
    directories: tuple[Path, ...] = ()
    with ExitStack() as stack:
        if asked.resume is not None:
            if not dry:
                stack.enter_context(campaign.alone_in(asked.resume))
            directories, prepared = campaign.reopen(asked.resume)
            means = replace(means, provider=_provider_again(directories, means.provider))
            foreign, trusted = trust.foreign(prepared), asked.trusted or dry
            trust.require(foreign, means.provider, trusted=trusted, whose=f"{asked.resume}: its labs")
        else:
            prepared = campaign.prepare_all(
                campaign.files(asked.files),
                paper=asked.paper,
                quick=asked.quick,
                only=asked.only,
                time=time,
                provider=means.provider,
                replicates=asked.replicates,
            )
        for line in (*campaign.left_out_in_words(prepared), *decidable.too_few_in_words(prepared, means.provider)):
            note(line)
        _require_possible(prepared, means)
        yield Opened(prepared, means, engine, directories)


@contextmanager
def begun(results: Path, prepared: Sequence[Prepared], provider: str) -> Iterator[tuple[Path, ...]]:
    """New results folders, in which no other run is meanwhile."""
    directories = campaign.begin(results, prepared, provider)
    with campaign.alone_in(folder_of(directories)):
        yield directories


def folder_of(directories: Sequence[Path]) -> Path:
    """The run's own folder, or that of all: the sweep's or the campaign's."""
    return directories[0] if len(directories) == 1 else Path(os.path.commonpath(directories))


def require_room(prepared: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """Raise EnvironmentLacks when there is not the memory for one of the labs, each with the heaviest of its overlays;
    what is to be said of bringing them up on this machine."""
    for plan, overlays in campaign.overlays_by_plan(prepared):
        bring_up.require_room(plan, registry.make(provider, Path(), plan.time), overlays)
    return bring_up.as_root(registry.make(provider, Path()))


def measure(
    directories: Sequence[Path],
    prepared: Sequence[Prepared],
    means: Means,
    watcher: Watcher,
    engine: str | EngineFile | None = None,
) -> Measured:
    """Take every sample that the directories lack, in this process or by the engine's workers, and write their tables;
    the caller keeps other runs out. A lab that fails ends a single run; of several it is noted, and the others go on.
    """
    folder = folder_of(directories)
    watcher.note(_how_much(prepared))
    if engine is None:
        complete = _by_labs(folder, directories, prepared, means, watcher)
    else:
        complete = _by_workers(folder, directories, engine, watcher)
    for each in dict.fromkeys((folder, *folder.iterdir())):
        if is_sweep(each):
            sweeps.write_together(each, labs_of(each))
    return Measured(folder, complete)


@contextmanager
def lab_for(plan: Plan, means: Means, say: Progress) -> Iterator[Lab]:
    """A lab of `plan`: the one that is up by the name that the means say, or a new one of bare hosts, taken down at the
    end unless it is kept.

    Raises InputError when the one that is up has other hosts, links or groups, or when a link of it is cut: the
    results would be of another topology than their manifest says.
    """
    if means.lab is not None:
        yield _lent(plan, labs.open_lab(means.lab), say)
        return
    name = f"{plan.name}-{os.getpid()}"
    if means.keep:
        yield labs.up(plan, means.provider, name, say)
        return
    with bring_up.bare(plan, means.provider, name, say) as made:
        yield made


def _lent(plan: Plan, found: Lab, say: Progress) -> Lab:
    if (found.plan.hosts, found.plan.links, found.plan.groups) != (plan.hosts, plan.links, plan.groups):
        raise InputError(f"lab {found.name} is {found.plan.name}; the experiment is made for {plan.name}")
    if found.time != plan.time:
        raise InputError(f"lab {found.name} is in {found.time} time; the run is in {plan.time} time")
    record = found.read_record()
    if mend := links.how_to_mend(found.plan, record):
        is_cut = bool(links.cut_links(found.plan, record))
        kind, verb = ("cut", "make them whole") if is_cut else ("changed", "set them as declared")
        commands = ", ".join(mend.values())
        raise InputError(f"lab {found.name} has links that are {kind} ({', '.join(mend)}); {verb} first: {commands}")
    if record.settings != labs.DECLARED:
        say("links are as an experiment that was broken off has left them: setting them as declared")
        labs.set_links(found, labs.DECLARED)
    return found


def _require_sense(asked: Asked) -> None:
    """Raises InputError for what cannot be asked together, whatever the experiments are."""
    if bool(asked.files) == bool(asked.resume):
        raise InputError("run: name an experiment, as in experiments/multihop.yaml, or --resume a results folder")
    _refuse_together(("--paper", asked.paper), ("--quick", asked.quick))
    _refuse_together(("--time", asked.time), ("--resume", asked.resume))  # a run goes on in the time that it began in
    _refuse_together(("--replicates", asked.replicates), ("--resume", asked.resume))
    _refuse_together(("--on", asked.means.on), ("--lab", asked.means.lab))
    _refuse_together(("--on", asked.means.on), ("--keep", asked.means.keep))


def _refuse_together(*options: tuple[str, object]) -> None:
    """Raises InputError when more than one of the options is given."""
    if sum(bool(value) for _, value in options) > 1:
        raise InputError(f"run: {' and '.join(name for name, _ in options)} exclude each other")


def _require_possible(prepared: Sequence[Prepared], means: Means) -> None:
    """Raises InputError where labs in real time are to share a machine, and where replicates, each of which is a lab of
    its own, are to share one, or to stay."""
    real = dict.fromkeys(each.experiment.name for each in prepared if each.samples and each.plan.time == "real")
    if means.on is not None and real:
        raise InputError(
            f"run: --on: {', '.join(real)} would be in real time, in which labs on one machine disturb each other: "
            "--time virtual, or without --on"
        )
    several = dict.fromkeys(
        each.experiment.name for each in prepared if each.samples and each.experiment.replicates > 1
    )
    option = "--lab" if means.lab is not None else "--keep" if means.keep else ""
    if several and option:
        raise InputError(
            f"run: {option}: each replicate of {', '.join(several)} is a lab of its own: without {option}, or with "
            "--replicates 1"
        )


def _time_of(name: str) -> Time | None:
    """The time of a lab that is up; None when there is none, which is said when it is wanted."""
    return next((each.time for each in labs.all_labs() if each.name == name), None)


def _provider_again(directories: Sequence[Path], asked: str) -> str:
    """The provider on which a run goes on: the one that it was begun on. Raises InputError where another was asked for
    than that, or DEFAULT, which may be said by nobody; and for runs of several."""
    begun_on = list(dict.fromkeys(manifests.read(each).provider for each in directories))
    if asked in begun_on or (asked == DEFAULT and len(begun_on) == 1):
        return asked if asked in begun_on else begun_on[0]
    raise InputError(f"run: --provider {asked}: it was begun on {listed(begun_on)}, and goes on there")


def _how_much(prepared: Sequence[Prepared]) -> str:
    names = dict.fromkeys(each.experiment.name for each in prepared)
    seconds = sum(each.seconds for each in prepared)
    several = f", {len(prepared)} labs" if len(prepared) > len(names) else ""
    clock = ", by the labs' own clock" if all(each.time == "virtual" for each in prepared) else ""
    return f"{', '.join(names)}{several}: {duration(seconds)} of measuring{clock}"


def _by_labs(
    folder: Path, directories: Sequence[Path], prepared: Sequence[Prepared], means: Means, watcher: Watcher
) -> bool:
    """Measure all, those of one topology in one lab; whether every sample has a result."""
    complete = True
    with _telling_how_to_resume(folder, "nothing that was measured is lost", watcher):
        replicated = [
            directory
            for directory, each in zip(directories, prepared, strict=True)
            if each.samples and each.experiment.replicates > 1
        ]
        shared = campaign.by_plan(
            [each for each in directories if each not in replicated],
            [each for each in prepared if not each.samples or each.experiment.replicates == 1],
        )
        for number, (plan, own) in enumerate(shared, start=1):
            names = ", ".join(each.name for each in own)
            if len(shared) > 1:
                watcher.note(f"lab {number} of {len(shared)}: {names}")
            try:
                complete &= _in_one_lab(plan, own, means, watcher)
            except (HostFailed, CommandFailed) as error:
                if len(directories) == 1:
                    raise
                watcher.note(f"minigts: {names}: {error}")
                complete = False
        if replicated:
            complete &= _replicates(folder, replicated, watcher)
    for directory, each in zip(directories, prepared, strict=True):
        # Nothing was left to take, or the lab failed before its tables could be derived.
        if not each.samples or not (directory / SAMPLES).exists():
            watcher.outcome(run.finish(directory), directory)
    return complete


def _in_one_lab(plan: Plan, directories: Sequence[Path], means: Means, watcher: Watcher) -> bool:
    """Measure what one lab can measure; whether every sample has a result."""
    with ExitStack() as stack:
        with watcher.preparing() as say:
            lab = stack.enter_context(lab_for(plan, means, say))
            campaign.describe_lab(directories, lab, say, fresh=means.lab is None)
        with watcher.measuring() as (step, on_progress):
            outcomes = campaign.take(directories, lab, step, on_progress)
    return _told(watcher, directories, outcomes)


def _replicates(folder: Path, directories: Sequence[Path], watcher: Watcher) -> bool:
    """Measure them one after the other, each in a lab of its own; whether every sample has a result."""
    with watcher.measuring() as (step, on_progress):
        in_turn.perform(folder, directories, step, on_progress)
    return _told(watcher, directories, map(run.finish, directories))


def _by_workers(folder: Path, directories: Sequence[Path], engine: str | EngineFile, watcher: Watcher) -> bool:
    """Have all measured by an engine's workers; whether every sample has a result."""
    with watcher.preparing() as say:
        for provider in dict.fromkeys(manifests.read(each).provider for each in directories):
            made = registry.make(provider, Path(), "virtual")
            if isinstance(made, Prepares):
                made.prepare(say)
    jobs = tuple(split(folder, directories))
    with _telling_how_to_resume(folder, "what jobs have brought is kept", watcher), ExitStack() as stack:
        with watcher.preparing() as say:
            begun_engine = stack.enter_context(engines.opened(engine, say))
        say, on_progress = stack.enter_context(watcher.measuring())
        outcome = doing.perform(begun_engine, jobs, partial(gathering.keep, folder), say, on_progress)
    for job, why in outcome.failed.items():
        watcher.note(f"minigts: {job}: {why}")
    return _told(watcher, directories, map(run.finish, directories))


def _told(watcher: Watcher, directories: Sequence[Path], outcomes: Iterable[Outcome]) -> bool:
    """Say what each came to, as it is known; whether every sample has a result."""
    complete = True
    for directory, outcome in zip(directories, outcomes, strict=True):
        watcher.outcome(outcome, directory)
        complete &= not outcome.failed
    return complete


@contextmanager
def _telling_how_to_resume(folder: Path, kept: str, watcher: Watcher) -> Iterator[None]:
    try:
        yield
    except BaseException:
        watcher.note(f"minigts: {kept}; go on with: minigts run --resume {folder}")
        raise

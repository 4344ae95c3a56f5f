"""The verbs of experiments. What a verb needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import files, screen, shown_findings
from minigts.cli.app import app
from minigts.cli.labs import LabName, Provider, TimeOption, require_room, warn_of_root
from minigts.errors import CommandFailed, EnvironmentLacks, HostFailed, InputError
from minigts.providers import DEFAULT
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile
    from minigts.experiments.campaign import Prepared
    from minigts.topology.plan import Plan

EXPERIMENTS = "Experiments"


@app.command(rich_help_panel=EXPERIMENTS)
def run(
    experiments: Annotated[
        list[Path] | None, typer.Argument(metavar="EXPERIMENT…", help="Files, or a folder: experiments/multihop.yaml.")
    ] = None,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    lab: LabName = None,
    paper: Annotated[bool, typer.Option("--paper", help="The study's own lengths and repetitions; hours.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="As little as shows something: `quick:` in the file.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="These overlays or measurements only; repeatable.")] = None,
    replicates: Annotated[
        int | None,
        typer.Option(metavar="N", help="In virtual time: so many labs with other seeds; 1, or 5 and more."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be measured; start nothing.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up afterwards.")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with an interrupted run in its results folder.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="ENGINE", help="Many labs side by side: local, local:N, a Dask scheduler's address, a file."
        ),
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where results folders are made.")] = Path("results"),
    trust: Annotated[
        bool, typer.Option("--trust", help="--resume: also where it was not begun here, and takes files or opens ways.")
    ] = False,
) -> None:
    """Run experiments: lab, overlays, measurements, figures, report; then the lab is taken down. Several make a
    campaign, in one folder; those of one topology share a lab. One that varies its topology is a sweep: a lab each.

    With --on, in virtual time, the campaign is split into jobs with a lab each, which Dask's workers do: of this
    machine (local), of a scheduler that runs, or of a cluster that a file describes. The same bytes come of it,
    whatever does the jobs, one worker or many.

    Exit 1 if a sample has no result. A claim that does not hold is a finding, not a failure.

    Example:  minigts run experiments/multihop.yaml

    Example:  minigts run experiments/ --time virtual --on local
    """
    from minigts.experiments import campaign, decidable
    from minigts.experiments import trust as trusts
    from minigts.lab import checked_name

    if bool(experiments) == bool(resume):
        raise InputError("run: name an experiment, as in experiments/multihop.yaml, or --resume a results folder")
    _refuse_together(("--paper", paper), ("--quick", quick))
    _refuse_together(("--time", time), ("--resume", resume))  # a run goes on in the time that it began in
    _refuse_together(("--replicates", replicates), ("--resume", resume))
    measure = _measurer(on, provider, lab, keep=keep)
    if lab is not None:
        time = time or _time_of(checked_name(lab))
    with ExitStack() as stack:
        if resume:
            if not dry_run:
                stack.enter_context(campaign.alone_in(resume))
            directories, prepared = campaign.reopen(resume)
            trusts.require(trusts.foreign(prepared), provider, trusted=trust or dry_run, whose=f"{resume}: its labs")
        else:
            places = [files.found(each, files.EXPERIMENTS) for each in experiments or ()]
            prepared = campaign.prepare_all(
                campaign.files(places),
                paper=paper,
                quick=quick,
                only=only or (),
                time=time,
                provider=provider,
                replicates=replicates,
            )
        for line in (*campaign.left_out_in_words(prepared), *decidable.too_few_in_words(prepared, provider)):
            screen.note(line)
        if on is not None:
            _refuse_real_time(prepared)
        _refuse_one_lab(prepared, lab, keep=keep)
        if dry_run:
            shown_findings.show_samples(prepared)
            return
        if lab is None and _is_here(on):
            require_room_for_all(prepared, provider)
            warn_of_root(provider)
        trusts.remember(prepared, provider)
        if not resume:
            directories = campaign.begin(results, prepared, provider)
            stack.enter_context(campaign.alone_in(folder_of(directories)))
        complete = measure(directories, prepared)
    raise typer.Exit(0 if complete else 1)


def _measurer(
    on: str | None, provider: str, lab: str | None, *, keep: bool
) -> Callable[[Sequence[Path], Sequence[Prepared]], bool]:
    """What measures. Raises InputError for an engine that is none, EnvironmentLacks for one that cannot be had."""
    if on is None:
        return partial(measure_all, provider=provider, lab=lab, keep=keep)
    from minigts.cluster import engine as engines

    _refuse_together(("--on", on), ("--lab", lab))
    _refuse_together(("--on", on), ("--keep", keep))
    return partial(_measure_on, engines.checked(on))


def _is_here(on: str | None) -> bool:
    """Whether labs are brought up on this machine."""
    if on is None:
        return True
    from minigts.cluster import engine as engines

    return engines.is_here(on)


def require_room_for_all(prepared: Sequence[Prepared], provider: str) -> None:
    """Raise EnvironmentLacks when there is not the memory for one of the labs."""
    from minigts.experiments import campaign

    for plan, overlays in campaign.overlays_by_plan(prepared):
        require_room(plan, provider, overlays, "")


def _refuse_real_time(prepared: Sequence[Prepared]) -> None:
    real = dict.fromkeys(each.experiment.name for each in prepared if each.samples and each.plan.time == "real")
    if real:
        raise InputError(
            f"run: --on: {', '.join(real)} would be in real time, in which labs on one machine disturb each other: "
            "--time virtual, or without --on"
        )


def _refuse_one_lab(prepared: Sequence[Prepared], lab: str | None, *, keep: bool) -> None:
    """Raises InputError where replicates, each of which is a lab of its own, are to share one, or to stay."""
    several = dict.fromkeys(
        each.experiment.name for each in prepared if each.samples and each.experiment.replicates > 1
    )
    option = "--lab" if lab is not None else "--keep" if keep else ""
    if several and option:
        raise InputError(
            f"run: {option}: each replicate of {', '.join(several)} is a lab of its own: without {option}, or with "
            "--replicates 1"
        )


def _refuse_together(*options: tuple[str, object]) -> None:
    """Raises InputError when more than one of the options is given."""
    if sum(bool(value) for _, value in options) > 1:
        raise InputError(f"run: {' and '.join(name for name, _ in options)} exclude each other")


def _time_of(lab: str) -> Time | None:
    """The time of a lab that is up; None when there is none, which is said when it is wanted."""
    from minigts import lab as labs

    return next((each.time for each in labs.all_labs() if each.name == lab), None)


def folder_of(directories: Sequence[Path]) -> Path:
    """The run's own folder, or that of all: the sweep's or the campaign's."""
    return directories[0] if len(directories) == 1 else Path(os.path.commonpath(directories))


def measure_all(
    directories: Sequence[Path], prepared: Sequence[Prepared], provider: str, lab: str | None, *, keep: bool
) -> bool:
    """Measure all, those of one topology in one lab, and report; whether every sample has a result."""
    from minigts.experiments import campaign, run

    together = folder_of(directories)
    _say_how_much(prepared)
    complete = True
    with _telling_how_to_resume(together, "nothing that was measured is lost"):
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
            if len(shared) > 1:
                screen.note(f"lab {number} of {len(shared)}: {', '.join(each.name for each in own)}")
            try:
                complete &= _measure(plan, own, provider, lab, keep=keep)
            except (HostFailed, CommandFailed) as error:
                if len(directories) == 1:
                    raise
                screen.note(f"minigts: {', '.join(each.name for each in own)}: {error}")
                complete = False
        if replicated:
            complete &= _measure_replicates(together, replicated)
    for directory, each in zip(directories, prepared, strict=True):
        # Nothing was left to take, or the lab failed before its tables could be derived.
        if not each.samples or not (directory / "samples.csv").exists():
            shown_findings.show_outcome(run.finish(directory), directory)
    _report(together)
    return complete


def _measure_on(engine: str | EngineFile, directories: Sequence[Path], prepared: Sequence[Prepared]) -> bool:
    """Have all measured by an engine's workers, and report; whether every sample has a result."""
    from minigts.cluster import doing, gathering
    from minigts.cluster import engine as engines
    from minigts.cluster.jobs import split
    from minigts.experiments import run
    from minigts.providers import registry
    from minigts.providers.base import Prepares
    from minigts.results import manifest as manifests

    together = folder_of(directories)
    _say_how_much(prepared)
    with screen.progress() as say:
        for provider in dict.fromkeys(manifests.read(each).provider for each in directories):
            made = registry.make(provider, Path(), "virtual")
            if isinstance(made, Prepares):
                made.prepare(say)
    jobs = tuple(split(together, directories))
    with _telling_how_to_resume(together, "what jobs have brought is kept"), ExitStack() as stack:
        with screen.progress() as say:
            opened = stack.enter_context(engines.opened(engine, say))
        say, on_progress = stack.enter_context(screen.measuring())
        outcome = doing.perform(opened, jobs, partial(gathering.keep, together), say, on_progress)
    for job, why in outcome.failed.items():
        screen.note(f"minigts: {job}: {why}")
    complete = True
    for directory in directories:
        result = run.finish(directory)
        shown_findings.show_outcome(result, directory)
        complete &= not result.failed
    _report(together)
    return complete


def _say_how_much(prepared: Sequence[Prepared]) -> None:
    names = dict.fromkeys(each.experiment.name for each in prepared)
    seconds = sum(each.seconds for each in prepared)
    labs = f", {len(prepared)} labs" if len(prepared) > len(names) else ""
    clock = ", by the labs' own clock" if all(each.time == "virtual" for each in prepared) else ""
    screen.note(f"{', '.join(names)}{labs}: {screen.duration(seconds)} of measuring{clock}")


def _report(together: Path) -> None:
    from minigts.report import missing, render
    from minigts.report.read import is_sweep, labs_of, read_sweep
    from minigts.results import sweeps

    for each in dict.fromkeys((together, *together.iterdir())):
        if is_sweep(each):
            sweeps.write_together(each, labs_of(each))
            shown_findings.show_claims(read_sweep(each).claims, each.name)
    lacking = missing()
    for line in lacking:
        screen.note(f"minigts: {line}; then: minigts report {together}")
    typer.echo(together if lacking else render(together))


def _measure(plan: Plan, directories: Sequence[Path], provider: str, lab: str | None, *, keep: bool) -> bool:
    """Measure what one lab can measure; whether every sample has a result."""
    from minigts.experiments import campaign

    with ExitStack() as stack:
        with screen.progress() as say:
            opened = stack.enter_context(campaign.lab_for(plan, provider, lab, keep=keep, say=say))
            campaign.describe_lab(directories, opened, say, fresh=lab is None)
        with screen.measuring() as (step, on_progress):
            outcomes = campaign.take(directories, opened, step, on_progress)
    for outcome, directory in zip(outcomes, directories, strict=True):
        shown_findings.show_outcome(outcome, directory)
    return not any(outcome.failed for outcome in outcomes)


def _measure_replicates(together: Path, directories: Sequence[Path]) -> bool:
    """Measure them one after the other, each in a lab of its own; whether every sample has a result."""
    from minigts.cluster import in_turn
    from minigts.experiments import run

    with screen.measuring() as (step, on_progress):
        in_turn.perform(together, directories, step, on_progress)
    complete = True
    for directory in directories:
        outcome = run.finish(directory)
        shown_findings.show_outcome(outcome, directory)
        complete &= not outcome.failed
    return complete


@contextmanager
def _telling_how_to_resume(directory: Path, kept: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        screen.note(f"minigts: {kept}; go on with: minigts run --resume {directory}")
        raise


@app.command(rich_help_panel=EXPERIMENTS)
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A results folder, or a campaign's.", show_default=False)
    ],
) -> None:
    """Render figures and report.html again, from the results alone. Needs no hosts.

    Example:  minigts report results/multihop-2026-11-21
    """
    from minigts.report import render

    with screen.progress() as say:
        say("rendering")
        page = render(directory)
    typer.echo(page)


@app.command(rich_help_panel=EXPERIMENTS)
def compare(
    a: Annotated[
        Path | None, typer.Argument(metavar="A", help="A results folder, or a campaign's.", show_default=False)
    ] = None,
    b: Annotated[
        Path | None, typer.Argument(metavar="B", help="The one to hold against it.", show_default=False)
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the page goes.", show_default="B/compared-with-A.html")
    ] = None,
    providers: Annotated[
        Path | None, typer.Option(metavar="TOPOLOGY", help="Measure this file on every provider that works here.")
    ] = None,
    on: Annotated[list[str] | None, typer.Option(help="With --providers: on these only; repeatable.")] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="With --providers: how often.")] = 5,
    time: TimeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --providers: every sample, as JSON.")] = False,
) -> None:
    """Say what differs between two runs, or two campaigns, by how much, and whether it matters.

    Exit 1 if a figure differs by what matters, as tested; 0 if none does. Needs no hosts.
    With --providers instead of runs: what one topology costs on each provider, and how exact it is there. In real time,
    which all of them have, unless the file or --time says virtual.

    Example:  minigts compare results/multihop-20261121-100000 results/multihop-20261122-100000

    Example:  minigts compare --providers topologies/pair.yaml
    """
    if providers is not None:
        if a or b or page:
            raise InputError("compare: give two results folders, or --providers TOPOLOGY; not both")
        _compare_providers(providers, on or [], rounds, time, as_json=as_json)
        return
    if a is None or b is None:
        raise InputError("compare: give two results folders, or --providers TOPOLOGY")
    compare_runs(a, b, page)


def compare_runs(a: Path, b: Path, page: Path | None, otherwise: int = 0) -> None:
    """Show and write the comparison. Exits 1 if a figure differs by what matters, else by the code `otherwise`."""
    from minigts.report import compare as comparing
    from minigts.report import comparison_page as shown
    from minigts.report import missing

    found = comparing.compare(a, b)
    lacking = missing()
    written = None if lacking else shown.page(found, page or b / f"compared-with-{a.resolve().name}.html")
    shown_findings.show_comparison(comparing.headline(found), shown.tables(found), shown.notes(found))
    for line in lacking:
        screen.note(f"minigts: no page is written: {line}")
    if written:
        typer.echo(written)
    raise typer.Exit(1 if found.differs else otherwise)


def _compare_providers(topology: Path, on: Sequence[str], rounds: int, time: Time | None, *, as_json: bool) -> None:
    from dataclasses import asdict

    from minigts.experiments import provider_comparison
    from minigts.providers import registry
    from minigts.topology.load import load

    plan = load(files.found(topology, files.TOPOLOGIES), time=time)
    wanted = on or registry.names()
    for name in wanted:
        registry.make(name, Path(), plan.time)
    with screen.progress() as say:
        found = provider_comparison.compare(plan, wanted, rounds, say)
    if as_json:
        screen.print_json(asdict(found))
    else:
        shown_findings.show_providers(found)
    if not found.samples:
        raise EnvironmentLacks("none of these providers works here; minigts doctor says more")

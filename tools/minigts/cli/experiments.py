"""The verbs of experiments. What a verb needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import files, screen, shown_findings
from minigts.cli.app import app
from minigts.cli.labs import LabName, Provider, TimeOption
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers import DEFAULT
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.experiments.run import OnProgress, Outcome

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
    from minigts.session import campaign

    asked = campaign.Asked(
        files=tuple(files.found(each, files.EXPERIMENTS) for each in experiments or ()),
        resume=resume,
        paper=paper,
        quick=quick,
        only=tuple(only or ()),
        time=time,
        replicates=replicates,
        trusted=trust,
        means=campaign.Means(provider, lab, keep, on),
    )
    with campaign.opened(asked, screen.note, dry=dry_run) as opened:
        if dry_run:
            shown_findings.show_samples(opened.prepared)
            return
        measured = opened.measure(results, OnScreen())
        show_report(measured.folder)
    raise typer.Exit(0 if measured.complete else 1)


class OnScreen:
    """Shows whoever runs a campaign how it goes; see `session.campaign.Watcher`."""

    def note(self, line: str) -> None:
        screen.note(line)

    def outcome(self, outcome: Outcome, directory: Path) -> None:
        shown_findings.show_outcome(outcome, directory)

    def preparing(self) -> AbstractContextManager[screen.Say]:
        return screen.progress()

    def measuring(self) -> AbstractContextManager[tuple[screen.Say, OnProgress]]:
        return screen.measuring()


def show_report(folder: Path) -> None:
    """What became of the claims of each sweep in a folder; and its report, drawn, or what is lacking for that."""
    from minigts.report import missing, render
    from minigts.report.read import is_sweep, read_sweep

    for each in dict.fromkeys((folder, *folder.iterdir())):
        if is_sweep(each):
            shown_findings.show_claims(read_sweep(each).claims, each.name)
    lacking = missing()
    for line in lacking:
        screen.note(f"minigts: {line}; then: minigts report {folder}")
    typer.echo(folder if lacking else render(folder))


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

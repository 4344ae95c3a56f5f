"""The verbs of experiments. What a verb needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import screen
from minigts.cli.app import app
from minigts.cli.labs import LabName, Provider
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.cli.running import Prepared

EXPERIMENTS = "Experiments"


@app.command(rich_help_panel=EXPERIMENTS)
def run(
    experiments: Annotated[
        list[Path] | None, typer.Argument(metavar="EXPERIMENT…", help="Files, such as experiments/multihop.yaml.")
    ] = None,
    provider: Provider = "uml",
    lab: LabName = None,
    paper: Annotated[bool, typer.Option("--paper", help="The study's own lengths and repetitions; hours.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One repetition.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="These overlays or measurements only; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be measured; start nothing.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up afterwards.")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with an interrupted run in its results folder.")
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where results folders are made.")] = Path("results"),
) -> None:
    """Run experiments: lab, overlays, measurements, figures, report; then the lab is taken down.

    Exit 1 if a sample has no result. A claim that does not hold is a finding, not a failure.

    Example:  minigts run experiments/multihop.yaml
    """
    from minigts.cli import running

    if bool(experiments) == bool(resume):
        raise InputError("run: name an experiment, as in experiments/multihop.yaml, or --resume a results folder")
    if paper and quick:
        raise InputError("run: --paper and --quick exclude each other")
    prepared = [running.prepare(file, paper=paper, quick=quick, only=only or ()) for file in experiments or ()]
    if resume:
        prepared = [running.reopen(resume)]
    if dry_run:
        screen.show_samples(prepared)
        return
    complete = [_measure(each, resume, results, provider, lab, keep=keep) for each in prepared]
    raise typer.Exit(0 if all(complete) else 1)


def _measure(
    prepared: Prepared, resume: Path | None, results: Path, provider: str, lab: str | None, *, keep: bool
) -> bool:
    """Measure and report one experiment; whether every sample has a result."""
    from minigts.cli import running
    from minigts.report import render

    screen.note(f"{prepared.experiment.title}: some {screen.duration(prepared.seconds)} of measuring")
    with ExitStack() as stack:
        with screen.progress() as say:
            opened = stack.enter_context(running.lab_for(prepared, provider, lab, keep=keep, say=say))
            directory = resume or running.begin(results, prepared, opened, say)
        stack.enter_context(_telling_how_to_resume(directory))
        with screen.measuring() as (step, on_progress):
            outcome = running.take(directory, opened, step, on_progress)
    page = render(directory)
    screen.show_outcome(outcome, directory)
    typer.echo(page)
    return not outcome.failed


@contextmanager
def _telling_how_to_resume(directory: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        screen.note(f"minigts: what was measured is kept; go on with: minigts run --resume {directory}")
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
    a: Annotated[Path, typer.Argument(metavar="A", help="A results folder, or a campaign's.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The one to hold against it.", show_default=False)],
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the page goes.", show_default="B/compared-with-A.html")
    ] = None,
) -> None:
    """Say what differs between two runs, or two campaigns, by how much, and whether it matters.

    Exit 1 if a figure differs by what matters, as tested; 0 if none does. Needs no hosts.

    Example:  minigts compare results/multihop-20261121-100000 results/multihop-20261122-100000
    """
    from minigts.report import compare as comparing
    from minigts.report import comparison as shown

    found = comparing.compare(a, b)
    written = shown.page(found, page or b / f"compared-with-{a.resolve().name}.html")
    screen.show_comparison(comparing.headline(found), shown.tables(found), shown.notes(found))
    typer.echo(written)
    raise typer.Exit(1 if found.differs else 0)

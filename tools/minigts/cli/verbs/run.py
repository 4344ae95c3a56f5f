"""`minigts run`: experiments."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console, files
from minigts.cli.options import KernelOption, Provider, ShareOption, TimeOption, read_share
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.views import findings as shown_findings
from minigts.providers import DEFAULT

if TYPE_CHECKING:
    from minigts.experiments.run import OnProgress, RunOutcome

verb = Verb(EXPERIMENTS, 370)


@verb.command()
def run(
    experiments: Annotated[
        list[Path] | None,
        typer.Argument(metavar="EXPERIMENT…", help="Files, or folders: the files in a folder itself."),
    ] = None,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    lab: Annotated[
        str | None,
        typer.Option(
            "--lab",
            metavar="NAME",
            help="A lab that is up. Default: a new one for each topology.",
            autocompletion=completion.labs,
        ),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The study's own lengths and repetitions; takes hours.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The least that shows something: `quick:` in the file.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this overlay or measurement; may be repeated.")] = None,
    replicates: Annotated[
        int | None,
        typer.Option(metavar="N", help="In virtual time: the number of labs, each with other seeds; 1, or at least 5."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be measured; start nothing.")] = False,
    kernel: KernelOption = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up afterwards.")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Continue an interrupted run in its results folder.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="ENGINE", help="Labs in parallel: local, local:N, a Dask scheduler's address, or a file."
        ),
    ] = None,
    share: ShareOption = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
    trust: Annotated[
        bool,
        typer.Option("--trust", help="--resume: allow what it lists to a run that you have not begun on this machine."),
    ] = False,
) -> None:
    """Run experiments: lab, overlays, measurements, figures, report; then the lab is taken down.

    Of a folder those are run that lie in it itself; a line says which of its folders have more.

    Several experiments make a campaign, in one folder; those of one topology share a lab. An experiment that varies its
    topology is a sweep, with a lab for each variant.

    With --on, in virtual time, the campaign is split into jobs with a lab each. Dask's workers do the jobs: on this
    machine (local), of a scheduler that runs, or of a cluster that a file describes. Whichever does the jobs, one
    worker or many, the results have the same bytes. With --share a process does a part of the jobs and knows of no
    other: so a campaign runs in the jobs of a batch system or of a CI, and `minigts merge` puts them together.

    Exit 1 if a sample has no result. A claim that does not hold is a finding, not a failure.

    Example:  minigts run experiments/multihop.yaml

    Example:  minigts run experiments/ --time virtual --on local
    """
    from minigts.session import campaign

    asked = campaign.CampaignRequest(
        files=tuple(files.find_file(each, files.EXPERIMENTS) for each in experiments or ()),
        resume=resume,
        paper=paper,
        quick=quick,
        only=tuple(only or ()),
        time=time,
        replicates=replicates,
        trusted=trust,
        kernel=kernel,
        means=campaign.Means(provider, lab, keep, on, read_share(share)),
    )
    with campaign.open_campaign(asked, console.note, dry=dry_run) as opened:
        if dry_run:
            shown_findings.show_samples(opened.prepared)
            for line in campaign.missing_builds(opened.prepared, opened.means):
                console.note(line)
            return
        measured = opened.measure(results, OnScreen())
        if share is not None:
            console.note("the tables come with: minigts merge FOLDER…, the folders of all shares")
            typer.echo(measured.folder)
        else:
            show_report(measured.folder)
        if measured.first is not None:
            show_beside(measured.first, measured.folder)
    raise typer.Exit(0 if measured.complete else 1)


class OnScreen:
    """Shows a campaign's progress on the terminal; see `session.campaign.CampaignWatcher`."""

    def note(self, line: str) -> None:
        console.note(line)

    def outcome(self, outcome: RunOutcome, directory: Path) -> None:
        shown_findings.show_outcome(outcome, directory)

    def preparing(self) -> AbstractContextManager[console.Say]:
        return console.progress()

    def measuring(self) -> AbstractContextManager[tuple[console.Say, OnProgress]]:
        return console.measuring()


def show_beside(first: Path, folder: Path) -> None:
    """Draw the first figure beside the exact one, and print the page's path."""
    from minigts.report import compare, comparison_page, missing

    if not missing():
        page = comparison_page.page(compare.compare(first, folder), folder / f"compared-with-{first.name}.html")
        console.note("the first figure, in real time, beside the exact one:")
        typer.echo(page)


def show_report(folder: Path) -> None:
    """Print the verdicts of each sweep in a folder, draw its report and print the path; or print what drawing lacks."""
    from minigts.report import missing, render
    from minigts.report.read import is_sweep, read_sweep

    for each in dict.fromkeys((folder, *folder.iterdir())):
        if is_sweep(each):
            shown_findings.show_claims(read_sweep(each).claims, each.name)
    lacking = missing()
    for line in lacking:
        console.note(f"minigts: {line}; then: minigts report {folder}")
    typer.echo(folder if lacking else render(folder))

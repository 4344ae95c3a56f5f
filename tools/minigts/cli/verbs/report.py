"""`minigts report`: figures and pages of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb

verb = Verb(EXPERIMENTS, 380)


@verb.command()
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a run or a campaign.", show_default=False)
    ],
) -> None:
    """Render figures and report.html again, from the results alone. Needs no hosts.

    A run that was ended before its tables were written, as by kill -9, gets them from the samples that it took.

    Example:  minigts report results/multihop-2026-11-21
    """
    from minigts.experiments.derive import derive
    from minigts.report import render
    from minigts.results import store

    with console.progress() as say:
        for each in store.runs_without_tables(directory):
            say(f"{each.name}: reading its samples")
            derive(each)
        say("rendering")
        page = render(directory)
    typer.echo(page)

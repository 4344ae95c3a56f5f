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
        Path, typer.Argument(metavar="DIR", help="A results folder, or a campaign's.", show_default=False)
    ],
) -> None:
    """Render figures and report.html again, from the results alone. Needs no hosts.

    Example:  minigts report results/multihop-2026-11-21
    """
    from minigts.report import render

    with console.progress() as say:
        say("rendering")
        page = render(directory)
    typer.echo(page)

"""`minigts plot`: figures of finished results, as a file asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb

verb = Verb(EXPERIMENTS, 382)


@verb.command()
def plot(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS…", help="Folders of runs, sweeps or campaigns, also of several.", show_default=False
        ),
    ],
    figures: Annotated[
        Path,
        typer.Argument(
            metavar="FIGURES", help="A file with `figures:`, as an experiment has, and `style:`.", show_default=False
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder for the figures.")] = Path("figures"),
) -> None:
    """Draw figures from finished results as SVG, PNG and PDF. Nothing is measured; needs no hosts.

    The file says what each figure shows, its axes, its size and its letters. With results of several experiments a
    figure shows them together. Prints each PDF's path, and its caption as a note.

    Example:  minigts plot results/distance-2026-11-21 figures.yaml --to paper
    """
    from minigts.report.plot import plot as drawn

    for drawing in drawn(results, figures, to):
        typer.echo(to / f"{drawing.name}.pdf")
        console.note(f"{drawing.heading}. {' '.join(drawing.caption)}")

"""`minigts validate`: hold labs against laws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts import paths
from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.verbs.run import OnScreen
from minigts.cli.views.tables import show_table
from minigts.errors import InputError

verb = Verb(EXPERIMENTS, 375)

FOLDER = Path("experiments/validation")
"""The folder of the laws among the project's own files."""


@verb.command()
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME…",
            help="Experiments of experiments/validation, as loss-law, or your files.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer values and replicates, for a few minutes: `quick:` in the files.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="ENGINE", help="Labs in parallel, as in `minigts run`: local, local:N, a file."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Measure nothing; make the page of this results folder."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the page goes. Default: validation.md in the results folder."),
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
) -> None:
    """Hold labs in virtual time against laws and references: TCP's laws of loss, queueing theory, timers, headers.

    Each law is a claim with `law:` in an experiment's file, with the range in which it has to hold and where that range
    comes from. The result is a table here, and a page with the figures, which docs/validation.md is.

    Exit 1 if a law failed or could not be decided, or if a sample has no result.

    Example:  minigts validate --quick

    Example:  minigts validate loss-law --page laws.md
    """
    from minigts.report import laws
    from minigts.session import campaign

    complete, folder = True, measured
    if folder is None:
        asked = campaign.Asked(files=_files(names or ()), quick=quick, means=campaign.Means(on=on))
        with campaign.opened(asked, console.note) as opened:
            done = opened.measure(results, OnScreen())
        complete, folder = done.complete, done.folder
    elif names or quick or on is not None:
        raise InputError("--from takes what was measured; it goes without names, --quick and --on")
    found = laws.groups(folder)
    rows = [(law.name, law.shown, law.share, law.experiment) for group in found for law in group.laws]
    show_table("laws", ("law", "verdict", ">distance", "experiment"), rows)
    typer.echo(laws.write_page(found, page or folder / laws.PAGE))
    held = all(law.verdict == "held" for group in found for law in group.laws)
    raise typer.Exit(0 if complete and held else 1)


def _files(names: Sequence[str]) -> tuple[Path, ...]:
    folder = paths.project_root() / FOLDER
    if not names:
        return (folder,)
    known = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    unknown = [name for name in names if name not in known and not Path(name).is_file()]
    if unknown:
        raise InputError(f"{unknown[0]}: no such file, and no experiment of validation; there are {', '.join(known)}")
    return tuple(known.get(name, Path(name)) for name in names)

"""`minigts merge`: the shares of a run or an exploration, put together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.verbs import run as run_verb
from minigts.cli.views import findings as shown_findings
from minigts.cli.views import seeds as shown_seeds
from minigts.errors import InputError

verb = Verb(EXPERIMENTS, 371)


@verb.command()
def merge(
    shares: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER…", help="The results folders of all shares.", show_default=False),
    ],
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
) -> None:
    """Put the shares of a run or of an exploration together, in a new results folder.

    Shares are what `minigts run --share I/N` and `explore --share I/N` have measured, on whichever machines. The tables
    are derived from all of them, and have the same bytes as those of one machine that did all jobs by itself. The
    folders of the shares are only read.

    Exit 1 if a sample or a seed is in no share, or a seed did not pass.

    Example:  minigts merge share-1/* share-2/* share-3/*
    """
    from minigts.explore import folder

    for each in shares:
        if not each.is_dir():
            raise InputError(f"{each}: no such results folder")
    explored = [each for each in shares if (each / folder.EXPLORATION).is_file()]
    if explored and len(explored) < len(shares):
        other = next(each for each in shares if each not in explored)
        raise InputError(f"{other} is of a run and {explored[0]} of an exploration; merge shares of one")
    if len({each.resolve() for each in shares}) < len(shares):
        raise InputError("merge: one folder is named twice")
    whole = _seeds(shares, results) if explored else _runs(shares, results)
    raise typer.Exit(0 if whole else 1)


def _runs(shares: Sequence[Path], results: Path) -> bool:
    from minigts.session import campaign

    merged = campaign.merge(shares, results)
    for directory, outcome in merged.outcomes.items():
        shown_findings.show_outcome(outcome, directory)
    if merged.lacking:
        console.note(f"minigts: {merged.lacking} samples have no result in any of these folders")
    run_verb.show_report(merged.folder)
    return not merged.lacking


def _seeds(shares: Sequence[Path], results: Path) -> bool:
    from datetime import UTC, datetime

    from minigts.explore import folder
    from minigts.results.folder import make

    make(results)
    place = folder.merge(shares, results, datetime.now(UTC))
    found, ended = folder.read(place), folder.outcomes(place)
    shown_seeds.show_outcomes(place, found, ended.values(), folder.tail_outcomes(place).values())
    left = folder.missing(place, found)
    if left:
        console.note(f"minigts: {len(left)} seeds have no result in any of these folders, the first is {left[0]}")
    typer.echo(place)
    return not left and not any(each.is_bad for each in ended.values())

"""`minigts bundle`: a run as one file for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.errors import InputError

verb = Verb(EXPERIMENTS, 400)


@verb.command()
def bundle(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="The folder of a run, a campaign or an exploration.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write.", show_default="RESULTS.zip"),
    ] = None,
) -> None:
    """Put a run or an exploration into one file for others. The same folder gives the same bytes.

    A run's file has the topology, experiment, raw data, certificate, report, and the checksums of image, kernel and
    clock; an exploration's has all that a replay takes. Its metadata are those of an RO-Crate.

    Example:  minigts bundle results/multihop-20261121-100000
    """
    from minigts.explore import bundling, folder
    from minigts.results import bundle as bundles

    if not directory.is_dir():
        raise InputError(f"{directory}: no such results directory")
    target = output or Path(f"{directory.resolve().name}.zip")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no directory {target.parent}")
    if (directory / folder.EXPLORATION).is_file():
        files, again = bundling.write(directory, target), f"minigts replay {target.name} --seed N --trust"
    else:
        files, again = bundles.write(directory, target), f"minigts reproduce {target.name}"
    console.note(f"{len(files)} files, {target.stat().st_size} bytes; elsewhere: {again}")
    typer.echo(target)

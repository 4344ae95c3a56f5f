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
        Path, typer.Argument(metavar="RESULTS", help="The folder of a run or a campaign.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write.", show_default="RESULTS.zip"),
    ] = None,
) -> None:
    """Put a run into one file for others. The same folder gives the same bytes.

    The file has the topology, experiment, raw data, certificate, report, and the checksums of image, kernel and clock.
    Its metadata are those of an RO-Crate.

    Example:  minigts bundle results/multihop-20261121-100000
    """
    from minigts.results import bundle as bundles

    if not directory.is_dir():
        raise InputError(f"{directory}: no such results directory")
    target = output or Path(f"{directory.resolve().name}.zip")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no directory {target.parent}")
    files = bundles.write(directory, target)
    console.note(f"{len(files)} files, {target.stat().st_size} bytes; elsewhere: minigts reproduce {target.name}")
    typer.echo(target)

"""The verbs that take over other testbeds' files, and write them. What a verb needs is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import screen
from minigts.cli.app import app
from minigts.cli.labs import LABS
from minigts.errors import InputError

Into = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; a file that is there stays.")
]


@app.command("import", rich_help_panel=LABS)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A GTS topology, .dsl or .gts.")],
    into: Into = None,
) -> None:
    """Turn another testbed's file into a topology of minigts', on stdout or in a file. Starts nothing.

    What it says and nobody honours here is a comment on top, and is said once. Every verb that takes a topology takes a
    .dsl or .gts file as it is, too.

    Example:  minigts import testbed.dsl -o testbed.yaml
    """
    from minigts.formats import network, reading
    from minigts.language.source import read_text
    from minigts.topology import load

    read = reading.read(read_text(file, reading.LANGUAGE), str(file))
    load.require_fit(read, str(file))
    for note in read.notes:
        screen.note(f"{file}: {note}")
    _give(network.text(read), into)


def _give(text: str, into: Path | None) -> None:
    if into is None:
        typer.echo(text, nl=False)
        return
    try:
        with into.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise InputError(f"{into}: here already, and left alone") from None
    except OSError as error:
        raise InputError(f"{into}: cannot be written: {error.strerror or error}") from None
    screen.note(f"{into} is written; try: minigts plan {into}")

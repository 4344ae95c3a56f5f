"""What the verbs `import` and `export` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts import paths
from minigts.cli import console
from minigts.errors import InputError

Into = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The new file to write; never an existing one. Default: standard output."
    ),
]

LeaveOut = Annotated[
    bool,
    typer.Option("--leave-out", help="Leave out settings of the network that cannot be expressed. Default: an error."),
]

Light = Annotated[
    bool,
    typer.Option(
        "--light",
        help="Hosts are light ones, which share kernels. Default: each has a kernel of its own, and 20 MB more.",
    ),
]


def give(text: str, into: Path | None) -> None:
    if into is None:
        typer.echo(text, nl=False)
        return
    try:
        with into.open("x", encoding="utf-8") as written:
            paths.users_file(written)
            written.write(text)
    except FileExistsError:
        raise InputError(f"{into}: here already, and left alone") from None
    except OSError as error:
        raise InputError(f"{into}: cannot be written: {error.strerror or error}") from None
    console.note(f"{into} is written")

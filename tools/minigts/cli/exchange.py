"""The verbs that take over other testbeds' files, and write them. What a verb needs is imported inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts import paths
from minigts.cli import screen
from minigts.cli.app import app
from minigts.cli.known import formats
from minigts.cli.labs import LABS, Topology, one_of, read_plan
from minigts.errors import InputError
from minigts.providers import DEFAULT

PICTURES = ("dot", "mermaid")

Into = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; a file that is there stays.")
]
LeaveOut = Annotated[
    bool,
    typer.Option("--leave-out", help="Do without what bears on the network and cannot be said; else it is an error."),
]


@app.command("import", rich_help_panel=LABS)
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Of GTS (.dsl, .gts), containerlab or netlab (.yml), or GraphML.")
    ],
    into: Into = None,
    leave_out: LeaveOut = False,
) -> None:
    """Turn another testbed's file into a topology of minigts', on stdout or in a file. Starts nothing.

    What of containerlab, netlab and GraphML bears on delay, rate, loss, addresses or who is joined to whom is honoured,
    or an error with its line, unless you say --leave-out. What else nobody honours is a comment on top, and is said
    once. Every verb that takes a topology takes a .dsl or .gts file as it is, too.

    Example:  minigts import testbed.dsl -o testbed.yaml
    """
    from minigts.formats import network, reading
    from minigts.language.source import read_text
    from minigts.topology import load

    read = reading.read(read_text(file, reading.language_of(file)), str(file), leave_out=leave_out)
    load.require_fit(read, str(file))
    for note in read.notes:
        screen.note(f"{file}: {note}")
    _give(network.text(read), into)


@app.command("export", rich_help_panel=LABS)
def export(
    topology: Topology,
    kind: Annotated[
        str,
        typer.Option(
            "--as", metavar="FORMAT", help="gts, containerlab, netlab, dot or mermaid.", autocompletion=formats
        ),
    ],
    into: Into = None,
    leave_out: LeaveOut = False,
) -> None:
    """Write a topology in another testbed's language, or as a drawing, on stdout or into a file. Starts nothing.

    What that language cannot say is said once. It is an error where it bears on delay, rate, loss, addresses or who is
    joined to whom, unless you say --leave-out. dot and mermaid are drawn by Graphviz and in Markdown pages.

    Example:  minigts export topologies/star.yaml --as netlab -o star.yml
    """
    from minigts.formats.reading import WRITERS
    from minigts.topology.exchange import network_of

    one_of("format", kind, [*WRITERS])
    network = network_of(read_plan(topology, DEFAULT, None))
    written = WRITERS[kind](network)
    lost = [] if kind in PICTURES else [*network.lost, *written.lost]
    if lost and not leave_out:
        lines = "\n".join(f"{topology}: {each}" for each in lost)
        raise InputError(f"{lines}\n{kind} cannot say this: with --leave-out it is left out")
    for note in (*(note for note in network.notes if kind not in PICTURES), *lost, *written.notes):
        screen.note(f"{topology}: {note}")
    _give(written.text, into)


def _give(text: str, into: Path | None) -> None:
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
    screen.note(f"{into} is written")

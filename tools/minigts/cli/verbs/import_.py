"""`minigts import`: another testbed's file as a topology."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.convert import Into, LeaveOut, Light, give
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 350)


@verb.command()
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file of GTS (.dsl, .gts), containerlab or netlab (.yml), Kathará (lab.conf), CORE (.xml), a graph "
            "(.graphml, .gml), or AS relationships (.as-rel.txt).",
        ),
    ],
    into: Into = None,
    leave_out: LeaveOut = False,
    part: Annotated[
        int | None,
        typer.Option(
            "--part",
            metavar="N",
            help="Of a graph in several parts that no link joins, only the N-th largest. Default: an error.",
        ),
    ] = None,
    ases: Annotated[
        int | None,
        typer.Option(
            "--ases",
            metavar="N",
            help="Of AS relationships, only the N systems with the most customers, direct and indirect. Default: all.",
        ),
    ] = None,
    light: Light = False,
) -> None:
    """Turn another testbed's file into a topology of minigts, on stdout or in a file. Starts nothing.

    Whatever in such a file affects delay, rate, loss, addresses or connections is converted, or an
    error with its line, unless you say --leave-out. Other keys that minigts lacks are listed once, and in a comment at
    the top. Every verb that takes a topology also takes a .dsl or .gts file.

    Example:  minigts import testbed.dsl -o testbed.yaml
    """
    from minigts.formats import detect, network
    from minigts.language.source import read_text
    from minigts.topology.read import load

    read = detect.read(
        read_text(file, detect.language_of(file)), str(file), leave_out=leave_out, part=part, largest=ases
    )
    read = replace(read, light=light)
    load.require_fit(read, str(file))
    for note in read.notes:
        console.note(f"{file}: {note}")
    give(network.text(read), into)

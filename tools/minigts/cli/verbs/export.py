"""`minigts export`: a topology as a file of the GÉANT Testbed Service, or a drawing."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.convert import Into, LeaveOut, give
from minigts.cli.options import Topology, one_of, read_plan
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError
from minigts.providers import DEFAULT

verb = Verb(LABS, 360)

PICTURES = ("dot", "mermaid")


@verb.command()
def export(
    topology: Topology,
    kind: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="gts, dot or mermaid.",
            autocompletion=completion.formats,
        ),
    ],
    into: Into = None,
    leave_out: LeaveOut = False,
) -> None:
    """Write a topology in the language of the GÉANT Testbed Service, or as a drawing, on stdout or into a file.

    It starts nothing. Settings that GTS cannot express are listed. They are an error if they affect delay, rate, loss,
    addresses or connections, unless you say --leave-out. Graphviz draws dot, and Markdown pages draw mermaid.

    Example:  minigts export topologies/star.yaml --as gts -o star.dsl
    """
    from minigts.formats.detect import WRITERS
    from minigts.topology.to_network import network_of

    one_of("format", kind, [*WRITERS])
    network = network_of(read_plan(topology, DEFAULT, None, any_kernel=True))
    written = WRITERS[kind](network)
    lost = [] if kind in PICTURES else [*network.lost, *written.lost]
    if lost and not leave_out:
        lines = "\n".join(f"{topology}: {each}" for each in lost)
        raise InputError(f"{lines}\n{kind} cannot express this: with --leave-out it is left out")
    for note in (*(note for note in network.notes if kind not in PICTURES), *lost, *written.notes):
        console.note(f"{topology}: {note}")
    give(written.text, into)

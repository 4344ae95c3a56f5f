"""`minigts generate`: topologies that follow from a few numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli.convert import Into, give
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 345, help="Topologies that follow from a few numbers and a seed.")


@verb.command("internet")
def generate_internet(
    ases: Annotated[
        int, typer.Option("--ases", metavar="N", help="How many autonomous systems, from 10 to 1000.")
    ] = 30,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed draws the same Internet.")] = 1,
    into: Into = None,
) -> None:
    """Draw an Internet of autonomous systems: customers, peers and providers, each a host with BGP. Starts nothing.

    The topology is written on stdout or in a file. Its routes are those that BGP finds by such relationships.

    Example:  minigts generate internet --ases 30 --seed 1 -o internet.yaml
    """
    from minigts.formats import network
    from minigts.generators.internet import internet
    from minigts.topology.read import load

    drawn = internet(ases, seed)
    load.require_fit(drawn, "--ases")
    give(network.text(drawn), into)

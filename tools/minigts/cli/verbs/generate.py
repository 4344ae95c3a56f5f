"""`minigts generate`: topologies that follow from a few numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli.convert import Into, Light, give
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 345, help="Topologies that follow from a few numbers and a seed.")


@verb.command("internet")
def generate_internet(
    ases: Annotated[
        int, typer.Option("--ases", metavar="N", help="How many autonomous systems, from 10 to 5000.")
    ] = 30,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed draws the same Internet.")] = 1,
    light: Light = False,
    into: Into = None,
) -> None:
    """Draw an Internet of autonomous systems: customers, peers and providers, each a host with BGP. Starts nothing.

    The topology is written on stdout or in a file. Its routes are those that BGP finds by such relationships.

    Example:  minigts generate internet --ases 30 --seed 1 -o internet.yaml
    """
    from minigts.formats import network
    from minigts.generators.internet import internet
    from minigts.topology.read import load

    drawn = internet(ases, seed, light=light)
    load.require_fit(drawn, "--ases")
    give(network.text(drawn), into)


@verb.command("satellites")
def generate_satellites(
    planes: Annotated[int, typer.Option("--planes", metavar="N", help="How many orbits.")] = 3,
    each: Annotated[int, typer.Option("--each", metavar="N", help="How many satellites on each.")] = 4,
    altitude: Annotated[float, typer.Option("--altitude", metavar="KM", help="How high they fly, in km.")] = 8000.0,
    inclination: Annotated[
        float, typer.Option("--inclination", metavar="DEGREES", help="How far the orbits lean from the equator.")
    ] = 53.0,
    phasing: Annotated[
        int, typer.Option("--phasing", metavar="N", help="Walker's F: the lead of the next orbit's satellites.")
    ] = 0,
    star: Annotated[
        bool, typer.Option("--star", help="Spread the orbits over half of the equator, as polar shells have it.")
    ] = False,
    stations: Annotated[
        str, typer.Option("--stations", metavar="CITIES", help="Cities with a station, between commas.")
    ] = "",
    elevation: Annotated[
        float,
        typer.Option("--elevation", metavar="DEGREES", help="How high a station's satellite stands at the least."),
    ] = 25.0,
    length: Annotated[int, typer.Option("--length", metavar="SECONDS", help="How long the schedule is.")] = 600,
    every: Annotated[int, typer.Option("--every", metavar="SECONDS", help="How often places are calculated.")] = 10,
    light: Light = False,
    into: Into = None,
) -> None:
    """Calculate a shell of satellites: delays and carriers of its links over time, as a schedule. Starts nothing.

    Circular orbits after Walker. The topology is written on stdout or in a file; `minigts play` plays it.

    Example:  minigts generate satellites --planes 3 --each 4 --stations vienna,tokyo -o shell.yaml
    """
    from minigts.formats import network
    from minigts.generators.satellites import Constellation, satellites
    from minigts.topology.read import load

    shell = Constellation(planes, each, altitude, inclination, phasing, "star" if star else "delta", elevation)
    made = satellites(shell, [city for city in stations.split(",") if city.strip()], length, every, light=light)
    load.require_fit(made, "satellites")
    give(network.text(made), into)

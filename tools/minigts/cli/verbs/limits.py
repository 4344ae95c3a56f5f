"""`minigts limits`: how many labs fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import AsJson, one_of, read_plan
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import tables
from minigts.providers import DEFAULT

verb = Verb(LABS, 250)


@verb.command()
def limits(
    topology: Annotated[Path, typer.Argument(metavar="[TOPOLOGY]", help="A topology file.")] = Path(
        "topologies/pair.yaml"
    ),
    overlay: Annotated[
        str | None,
        typer.Option("--overlay", help="The overlay. Default: the topology's.", autocompletion=completion.overlays),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print how many labs of a topology fit on this machine, by memory and by processes, and what limits them.

    It counts labs of provider `uml` for the user who asks, and starts nothing. Processors set no limit: with more labs,
    those in virtual time take longer, and those in real time do not keep to their links' settings.

    Example:  minigts limits topologies/chain6.yaml --overlay swarm
    """
    from dataclasses import asdict

    from minigts import overlays
    from minigts.providers.uml import memory

    if overlay is not None:
        one_of("overlay", overlay, sorted(overlays.known_names()))
    plan = read_plan(topology, DEFAULT, None, any_kernel=True)
    chosen = overlay or plan.overlay
    found = memory.bounds(plan, chosen)
    if as_json:
        each = [{**asdict(bound), "labs": bound.labs, "labs_at_most": bound.labs_at_most} for bound in found]
        console.print_json({"topology": plan.name, "overlay": chosen, "bounds": each})
        return
    if not found:
        console.out().print("this machine does not say what it has")
        return
    rows = (
        (bound.by, f"{bound.of_a_lab} {bound.unit}", str(bound.free), str(bound.labs), str(bound.labs_at_most))
        for bound in found
    )
    title = f"{found[0].labs} labs of {plan.name} with the overlay {chosen} fit now, by {found[0].by}"
    tables.show_table(
        title, ("bound", ">a lab takes", ">free", ">labs now", ">if nothing ran"), rows, optional=("if nothing ran",)
    )

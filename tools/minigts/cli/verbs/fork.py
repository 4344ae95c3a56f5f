"""`minigts fork`: a lab becomes two."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 312)


@verb.command()
def fork(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the second lab.")],
    lab: LabName = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="Draw other random numbers in the second lab from now on. Default: 0, the same ones as the first.",
        ),
    ] = 0,
) -> None:
    """Have a lab that is up become two: a second lab goes on from this moment, with all in its hosts' memory.

    No host notices, and no time of the lab passes. What is done to one of the two is not done to the other. The second
    lab ends with the first one at the latest. Labs of provider uml in virtual time can fork.

    Example:  minigts fork what-if --seed 3
    """
    from minigts import lab as labs

    opened = labs.open_lab(lab)
    started_s = time.monotonic()
    other = labs.fork(opened, name, seed)
    console.note(
        f"lab {opened.name} goes on, and lab {other.name} beside it, since {time.monotonic() - started_s:.1f} s; try: "
        f"minigts exec --lab {other.name} {other.plan.hosts[0].name} -- uptime"
    )

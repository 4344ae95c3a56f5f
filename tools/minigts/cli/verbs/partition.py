"""`minigts partition`: cut groups of machines off from each other."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 160)


@verb.command()
def partition(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST,HOST...", help="Two groups or more.", autocompletion=completion.hosts),
    ] = None,
    heal: Annotated[bool, typer.Option("--heal", help="Restore every link that is cut.")] = False,
    lab: LabName = None,
) -> None:
    """Cut every link between groups of machines, so that no machine reaches another group; or heal the lab.

    Example:  minigts partition ams,bra lju,mil,ham,lon
    """
    from minigts import lab as labs

    split = [[name for name in group.split(",") if name] for group in groups or []]
    if heal == bool(split) or (split and (len(split) < 2 or not all(split))):
        raise InputError("partition: name two groups or more, as in ams,bra lju,mil; or --heal")
    opened = labs.open_lab(lab)
    names = labs.heal(opened) if heal else labs.partition(opened, split)
    done = "whole again" if heal else "cut"
    console.note(f"{done}: {', '.join(names)}" if names else f"no link is {'cut' if heal else 'between these groups'}")

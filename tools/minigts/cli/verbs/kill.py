"""`minigts kill`: cut a host's power."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 60)
HIGHEST_SEED = 999_999
"""As `topology.plan.stored.HIGHEST_SEED`, which `--help` does not import."""


@verb.command()
def kill(
    host: Host,
    lab: LabName = None,
    power_cut: Annotated[
        bool,
        typer.Option("--power-cut", help="Its disk loses what was not flushed. For hosts with `disk: cached`."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", min=0, max=HIGHEST_SEED, help="What the disk loses is drawn by it. Default: 1."
        ),
    ] = None,
) -> None:
    """Cut a host's power: it ends at once and stays off until `minigts start`. Frames sent to it are lost.

    Its disk is written out first, unless --power-cut has it lose what was not flushed. The other hosts run on.

    Example:  minigts kill bra

    Example:  minigts kill bra --power-cut --seed 7
    """
    from minigts import lab as labs

    if seed is not None and not power_cut:
        raise InputError("--seed draws what --power-cut lets the disk lose: write both")
    opened = lab_with(host, lab)
    labs.kill(opened, host, (1 if seed is None else seed) if power_cut else None)
    console.note(f"{host} is off; to start it: minigts start {host}")

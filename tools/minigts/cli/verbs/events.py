"""`minigts events`: the events of a lab."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated

import typer

from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 240)


@verb.command()
def events(
    lab: WhichLab = None,
    named: LabName = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events until the lab is down, or ctrl-c.")
    ] = False,
) -> None:
    """Print the events of a lab since its start, one line of JSON each.

    Events are: hosts killed and started, links cut and set, overlays joined and left, experiments.

    Example:  minigts events

    Example:  minigts events --follow | jq -r .event
    """
    from minigts import lab as labs
    from minigts.lab import events as happened

    opened = labs.open_lab(which(lab, named))
    with suppress(KeyboardInterrupt):
        for event in happened.follow(opened.rundir) if follow else happened.read(opened.rundir):
            typer.echo(json.dumps(event))

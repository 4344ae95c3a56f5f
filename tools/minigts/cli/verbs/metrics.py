"""`minigts metrics`: a lab's counters for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

verb = Verb(LABS, 235)


@verb.command()
def metrics(
    lab: WhichLab = None,
    named: LabName = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print a dashboard for Grafana instead; it needs no lab.")
    ] = False,
) -> None:
    """Print what a lab's links and hosts count, once, as OpenMetrics text. Changes nothing.

    Counters are since the lab came up. Prometheus reads them from minigts serve, at /metrics.

    Example:  minigts metrics >lab.prom

    Example:  minigts metrics --dashboard >minigts.json
    """
    from minigts import lab as labs
    from minigts.lab import metrics as of_labs

    if dashboard:
        if lab is not None or named is not None:
            raise InputError("--dashboard is the same for all labs: leave the lab's name out")
        typer.echo(of_labs.dashboard(), nl=False)
        return
    typer.echo(of_labs.read(labs.open_lab(which(lab, named))), nl=False)

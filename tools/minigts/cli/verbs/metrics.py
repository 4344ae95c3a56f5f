"""`minigts metrics`: a lab's counters for Prometheus."""

from __future__ import annotations

import typer

from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 235)


@verb.command()
def metrics(lab: WhichLab = None, named: LabName = None) -> None:
    """Print what a lab's links and hosts count, once, as OpenMetrics text. Changes nothing.

    Counters are since the lab came up.

    Example:  minigts metrics >lab.prom
    """
    from minigts import lab as labs
    from minigts.lab import metrics as of_labs

    typer.echo(of_labs.read(labs.open_lab(which(lab, named))), nl=False)

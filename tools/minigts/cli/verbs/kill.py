"""`minigts kill`: a host, ended."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 60)


@verb.command()
def kill(host: Host, lab: LabName = None) -> None:
    """Cut a host's power: it ends at once and stays off until `minigts start`. What it has been sent is lost.

    Its disk is written out before. The other hosts run on.

    Example:  minigts kill bra
    """
    from minigts import lab as labs

    opened = lab_with(host, lab)
    labs.kill(opened, host)
    console.note(f"{host} is off; again on by: minigts start {host}")

"""`minigts kill`: cut a host's power."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 60)


@verb.command()
def kill(host: Host, lab: LabName = None) -> None:
    """Cut a host's power: it ends at once and stays off until `minigts start`. Frames sent to it are lost.

    Its disk is written out first. The other hosts run on.

    Example:  minigts kill bra
    """
    from minigts import lab as labs

    opened = lab_with(host, lab)
    labs.kill(opened, host)
    console.note(f"{host} is off; to start it: minigts start {host}")

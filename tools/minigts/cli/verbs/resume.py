"""`minigts resume`: let time pass again for a host."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 90)


@verb.command()
def resume(host: Host, lab: LabName = None) -> None:
    """Resume a paused host. The host does not know how long it was paused.

    Example:  minigts resume bra
    """
    from minigts import lab as labs

    labs.resume(lab_with(host, lab, also_off=True), host)
    console.note(f"{host} is resumed")

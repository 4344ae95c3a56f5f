"""`minigts resume`: a host that was paused."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 90)


@verb.command()
def resume(host: Host, lab: LabName = None) -> None:
    """Let a host go on that is paused. It does not know of the time that has passed.

    Example:  minigts resume bra
    """
    from minigts import lab as labs

    labs.resume(lab_with(host, lab, also_off=True), host)
    console.note(f"{host} goes on")

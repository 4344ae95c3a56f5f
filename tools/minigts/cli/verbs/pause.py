"""`minigts pause`: a host for which no time passes."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 80)


@verb.command()
def pause(host: Host, lab: LabName = None) -> None:
    """Let no time pass for a host until `minigts resume`: as a virtual machine that is paused. The others run on.

    What it is sent waits as far as its ports have room, and its own clock is behind afterwards.

    Example:  minigts pause bra
    """
    from minigts import lab as labs

    labs.pause(lab_with(host, lab), host)
    console.note(f"{host} is paused; it goes on by: minigts resume {host}")

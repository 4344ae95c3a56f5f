"""`minigts pause`: stop time for a host."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 80)


@verb.command()
def pause(host: Host, lab: LabName = None) -> None:
    """Let no time pass for a host until `minigts resume`, as for a paused virtual machine. The other hosts run on.

    Frames sent to it wait while its ports have room. Its own clock is late afterwards.

    Example:  minigts pause bra
    """
    from minigts import lab as labs

    labs.pause(lab_with(host, lab), host)
    console.note(f"{host} is paused; to resume it: minigts resume {host}")

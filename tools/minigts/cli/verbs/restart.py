"""`minigts restart`: end a host and start it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb

if TYPE_CHECKING:
    from minigts.lab import Lab

verb = Verb(LABS, 50)


@verb.command()
def restart(host: Host, lab: LabName = None) -> None:
    """End a host as a power cut does, start it again on its disk and its links, and join it to the overlay again.

    The other hosts run on. Of its programs, only those of the overlay are started again. What somebody has changed at
    the other ends of its links (interfaces, addresses, routes) is set again and printed.

    Example:  minigts restart bra
    """
    start_again(lab_with(host, lab, also_off=True), host)


def start_again(opened: Lab, host: str) -> None:
    from minigts import lab as labs
    from minigts import overlays
    from minigts.fidelity.mending import mend_ways

    with console.progress() as say:
        say(f"starting {host} again")
        mended = mend_ways(opened, host)
        labs.restart(opened, host)
        overlays.rejoin(opened, host, say)
    for name, differences in mended.items():
        console.note(f"set again on {name}: {'; '.join(differences)}")
    console.note(f"{host} is up again")

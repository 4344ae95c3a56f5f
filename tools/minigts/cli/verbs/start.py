"""`minigts start`: start a host that is off."""

from __future__ import annotations

from minigts.cli.options import Host, LabName, lab_with
from minigts.cli.verbs import LABS, Verb
from minigts.cli.verbs.restart import start_again
from minigts.errors import InputError

verb = Verb(LABS, 70)


@verb.command()
def start(host: Host, lab: LabName = None) -> None:
    """Start a host that is off, on its disk and its links, and join it to the overlay again.

    Example:  minigts start bra
    """
    opened = lab_with(host, lab, also_off=True)
    if host not in opened.read_record().off:
        raise InputError(f"start: {host} is not off; minigts restart {host} ends it and starts it again")
    start_again(opened, host)

"""`minigts calibrate`: delays, set anew by what links take by themselves."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 120)


@verb.command()
def calibrate(lab: WhichLab = None, named: LabName = None) -> None:
    """Measure what links take by themselves, and set every delay so that with it a link takes what is declared.

    `up` does so, too. Again, when `check` finds round trips that are shorter than declared: `up` met a busier machine.
    What has been cut stays cut.

    Example:  minigts calibrate
    """
    from minigts import lab as labs

    opened = labs.open_lab(which(lab, named))
    if labs.link_carrier(opened) is not None:
        console.note(f"lab {opened.name} has nothing to calibrate: its links take just what is declared")
        return
    with console.progress() as say:
        say("measuring the emulator's own latency")
        overhead_ms = labs.calibrate(opened)
    console.note(f"{overhead_ms:.3f} ms a link and way are taken off the delays; minigts check measures the lab anew")

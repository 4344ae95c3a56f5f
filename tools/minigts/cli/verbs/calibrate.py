"""`minigts calibrate`: correct the delays by the emulator's own latency."""

from __future__ import annotations

from minigts.cli import console
from minigts.cli.options import LabName, WhichLab, which
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 120)


@verb.command()
def calibrate(lab: WhichLab = None, named: LabName = None) -> None:
    """Measure the emulator's own latency and subtract it from every delay, so that links take the declared time.

    `up` does so, too. Calibrate again when `check` finds round trips that are shorter than declared: the machine was
    busier during `up`. Links that are cut stay cut.

    Example:  minigts calibrate
    """
    from minigts import lab as labs

    opened = labs.open_lab(which(lab, named))
    if labs.link_carrier(opened) is not None:
        console.note(f"lab {opened.name} has nothing to calibrate: its wires are exactly as declared")
        return
    with console.progress() as say:
        say("measuring the emulator's own latency")
        overhead_ms = labs.calibrate(opened)
    subtracted = f"{overhead_ms:.3f} ms for each link and direction are subtracted from the delays"
    console.note(f"{subtracted}; minigts check measures the lab again")

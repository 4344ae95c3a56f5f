"""What tests of latency allow a machine that does something else too, or whose hosts' processors are emulated."""

from __future__ import annotations

import time

from minigts import lab as labs
from minigts import overlays
from minigts.experiments.guard import taints
from minigts.lab import Lab
from minigts.providers.vagrant.provider import VagrantProvider
from minigts.watch import watching

EMULATED_MS = {"none": 1.0, "swarm": 2.5}
QUIET_PATIENCE_S = 20.0


def ends_ms(lab: Lab) -> float:
    """What the ends of a path may add to its tolerance where QEMU emulates their processors: see docs/vagrant.md."""
    emulated = isinstance(lab.provider, VagrantProvider) and lab.provider.emulated
    joined = overlays.joined(lab)
    return EMULATED_MS[joined.name if joined else overlays.UNDERLAY] if emulated else 0.0


def wait_for_quiet(lab: Lab) -> None:
    """Before a repetition, until the guard would not mark a second of this machine's, or patience is over."""
    deadline = time.monotonic() + QUIET_PATIENCE_S
    while time.monotonic() < deadline:
        with watching(lab.provider.processes()) as watched:
            time.sleep(1)
        if not taints(watched.readings):
            return


def calibrated_anew(lab: Lab, off_ms: float, tolerance_ms: float, *, longer_too: bool) -> bool:
    """Whether round trips of `off_ms` beyond the declared ones made it calibrate the lab again: nothing seen before
    counts then.

    The machine may have been in another state at `up`. `minigts check`, too, measures the emulator's own latency again
    when round trips are shorter than declared; after longer ones, which may be a moment's load, tests do so last.
    """
    anew = off_ms < -tolerance_ms or (longer_too and off_ms > tolerance_ms)
    if anew:
        labs.calibrate(lab)
    return anew

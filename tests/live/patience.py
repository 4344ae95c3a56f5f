"""What tests of latency allow a machine that does something else too, or whose hosts' processors are emulated."""

from __future__ import annotations

import time
from pathlib import Path

from minigts import overlays
from minigts.lab import Lab
from minigts.providers.vagrant.provider import VagrantProvider

EMULATED_MS = {"none": 1.0, "swarm": 2.5}
QUIET_PERCENT, QUIET_PATIENCE_S = 15.0, 20.0


def ends_ms(lab: Lab) -> float:
    """What the ends of a path may add to its tolerance where QEMU emulates their processors: see docs/vagrant.md."""
    emulated = isinstance(lab.provider, VagrantProvider) and lab.provider.emulated
    joined = overlays.joined(lab)
    return EMULATED_MS[joined.name if joined else overlays.UNDERLAY] if emulated else 0.0


def wait_for_quiet() -> None:
    """Before a repetition, until hardly anything waits for a processor, or patience is over. Source: the kernel's
    Documentation/accounting/psi.rst."""
    pressure = Path("/proc/pressure/cpu")
    deadline = time.monotonic() + QUIET_PATIENCE_S
    while pressure.exists() and time.monotonic() < deadline:
        some = pressure.read_text().split()[1]  # some avg10=0.00 avg60=…
        if float(some.removeprefix("avg10=")) < QUIET_PERCENT:
            return
        time.sleep(1)

"""What tests of latency in real time allow a machine that does something else too, or whose processors are emulated."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

from minigts import lab as labs
from minigts import overlays
from minigts.fidelity.host_load import recording, taints
from minigts.lab import Lab
from minigts.providers.vagrant.provider import VagrantProvider

EMULATED_MS = {"none": 1.0, "swarm": 2.5}
QUIET_PATIENCE_S = 10.0
CALIBRATIONS, TRIES = 5, 3


class FirstTryMissed(UserWarning):
    """A latency in real time was not within its tolerance at first; pytest lists the tests that have needed more."""


def ends_ms(lab: Lab) -> float:
    """What the ends of a path may add to its tolerance where QEMU emulates their processors: see docs/vagrant.md."""
    emulated = isinstance(lab.provider, VagrantProvider) and lab.provider.emulated
    joined = overlays.joined(lab)
    return EMULATED_MS[joined.name if joined else overlays.UNDERLAY] if emulated else 0.0


def patiently(lab: Lab, forget: Callable[[], None]) -> Iterator[int]:
    """The number of every try that a latency has, until the caller is content; its tolerance stays. A lab in virtual
    time has one.

    Most load adds, so that the lowest of the tries counts; each but the first waits for a quiet machine. That is the
    lowest since the lab was calibrated: the machine may have been in another state at `up`, so after every few tries
    the emulator's own latency is measured again, and the caller has to `forget` what it saw before.
    """
    for attempt in range(1 if lab.plan.time == "virtual" else CALIBRATIONS * TRIES):
        if attempt == 1:
            warnings.warn("the first try was not within its tolerance", FirstTryMissed, stacklevel=2)
        if attempt:
            wait_for_quiet(lab)
        if attempt and attempt % TRIES == 0:
            labs.calibrate(lab)
            forget()
        yield attempt


def wait_for_quiet(lab: Lab) -> None:
    """Until the guard would not mark a second of this machine's, or patience is over."""
    deadline = time.monotonic() + QUIET_PATIENCE_S
    while time.monotonic() < deadline:
        with recording(lab.provider.processes()) as machine:
            time.sleep(1)
        if not taints(machine.load):
            return

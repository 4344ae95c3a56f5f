"""What tests of latency in real time allow a machine that does something else too, or whose processors are emulated.

A busy machine only ever adds to a round trip: the lowest of many is what links and ends take. It is measured once. How
exact a latency is in the middle and at its end is judged in virtual time.
"""

from __future__ import annotations

from minigts import overlays
from minigts.judge.tolerances import round_trip
from minigts.lab import Lab
from minigts.providers.vagrant.provider import VagrantProvider
from minigts.topology.plan.elements import Path

EMULATED_MS = {"none": 1.0, "swarm": 2.5}
PROBES = 250
"""Over some seconds, of which others have the processor for a part."""


def ends_ms(lab: Lab) -> float:
    """What the ends of a path may add to its tolerance where QEMU emulates their processors: see docs/vagrant.md."""
    emulated = isinstance(lab.provider, VagrantProvider) and lab.provider.emulated
    joined = overlays.joined_overlay(lab)
    return EMULATED_MS[joined.name if joined else overlays.UNDERLAY] if emulated else 0.0


def band_ms(lab: Lab, path: Path, more_ms: float = 0.0) -> tuple[float, float]:
    """Within which the lowest round trip over the path lies, that may take `more_ms` longer than declared.

    What was taken off as the emulator's own latency may have been measured on a busier machine, and be too much.
    """
    allowed_ms = round_trip(lab.plan, path).distance(path.rtt_ms) + more_ms
    too_much_ms = 2 * lab.read_record().emulator_overhead_ms
    return path.rtt_ms - allowed_ms - too_much_ms, path.rtt_ms + allowed_ms + ends_ms(lab)

"""Host load: what else the machine did while something was measured, and which samples that has spoilt. Pure.

The limits were found by measurement: `bench/run guard` puts load on the machine under a random half of its samples;
docs/trust.md has its figures.
"""

from __future__ import annotations

from minigts.watch import Readings

LIMITS = {
    "foreign_cores": 0.25,
    "steal_cores": 0.05,
    "memory_stalled": 0.02,
    "throttled_s": 0.005,
    "dropped": 0,
}
"""Above its limit a signal taints the sample, in the unit of `Readings`."""
WORDS = {
    "foreign_cores": "other programs used {:.2f} processors",
    "steal_cores": "other guests of the outer machine took {:.2f} processors",
    "memory_stalled": "processes waited for memory {:.0%} of the time",
    "throttled_s": "the control group was throttled for {:.3f} s",
    "dropped": "delays of the hosts ran full and dropped {} packets",
}


def taints(readings: Readings | None) -> tuple[str, ...]:
    """Why a sample taken meanwhile is doubtful, a phrase each; empty when it is not."""
    if readings is None:
        return ()
    values = {name: getattr(readings, name) for name in LIMITS}
    return tuple(
        WORDS[name].format(value) for name, value in values.items() if value is not None and value > LIMITS[name]
    )

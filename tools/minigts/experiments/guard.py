"""The guard: which samples the machine has spoilt. Pure but for counting a directory's files.

The limits were found by measurement: `bench/run guard` puts load on the machine under a random half of its samples;
docs/trust.md has its figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minigts.experiments.matrix import Sample
from minigts.results import store
from minigts.results.schema import Guard
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


def summary(directory: Path, samples: Sequence[Sample]) -> Guard:
    """What the guard saw over a whole run."""
    results = [raw for sample in samples if (raw := store.good(directory, sample.id)) is not None]
    readings = [raw.machine for raw in results if raw.machine is not None]
    absent = [name for name in LIMITS if readings and all(getattr(each, name) is None for each in readings)]
    return Guard(
        limits=LIMITS,
        absent=tuple(absent),
        tainted=sum(bool(raw.tainted) for raw in results),
        repeated=sum(store.repeats(directory).values()),
    )

"""The guard's summary of a whole run, from a directory's files; `fidelity.host_load` has what spoils a sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minigts.experiments.matrix import Sample
from minigts.fidelity.host_load import LIMITS
from minigts.results import store
from minigts.results.schema import Guard


def summary(directory: Path, samples: Sequence[Sample]) -> Guard:
    """The limits, absent signals, and counts of tainted and repeated samples of a run."""
    results = [raw for sample in samples if (raw := store.good(directory, sample.id)) is not None]
    readings = [raw.machine for raw in results if raw.machine is not None]
    absent = [name for name in LIMITS if readings and all(getattr(each, name) is None for each in readings)]
    return Guard(
        limits=LIMITS,
        absent=tuple(absent),
        tainted=sum(bool(raw.tainted) for raw in results),
        repeated=sum(store.repeats(directory).values()),
    )

"""Each word that `expect:` and `claims:` share, and the one function that judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from minigts.judge.latency import as_declared, steady, sum_of_segments
from minigts.judge.samples import PathSamples
from minigts.judge.throughput import falls_slightly, falls_with_hops, level, step_after_first_hop, within_ceiling
from minigts.judge.verdicts import Judgement
from minigts.topology.plan.plan import Plan

WORDS: Mapping[str, Callable[[Sequence[PathSamples], Plan], Judgement]] = {
    "sum-of-segments": sum_of_segments,
    "as-declared": as_declared,
    "steady": steady,
    "within-ceiling": within_ceiling,
    "falls-with-hops": falls_with_hops,
    "step-after-first-hop": step_after_first_hop,
    "falls-slightly": falls_slightly,
    "level": level,
}
"""Each function judges the cells of one measurement over one network."""

"""What a path measured once, as the judge takes it."""

from __future__ import annotations

from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.tolerances import round_trip
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan


def cell(path: Path, rtt_ms: float, plan: Plan) -> PathSamples:
    return PathSamples(
        source=path.source,
        target=path.target,
        hops=path.hops,
        kind="segment" if path.hops == 1 else "path",
        unit="ms",
        estimate=measured_once(rtt_ms, round_trip(plan)),
        predicted=path.rtt_ms,
        p99=None,
    )

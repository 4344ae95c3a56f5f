"""How long taking samples takes this machine: by what was seen of the same samples here, else by what was measured of
labs' speed in virtual time, corrected by how long other samples of the same tool took here.

docs/evidence/virtual-time.md has the measurements: an idle lab passes 1160 seconds of its own in a real one with two
hosts, and 168 with fifty; while packets go to and fro now and then it passes some 130; each frame costs 2.4 µs on each
link and 9 µs at its two ends. The 114 samples of `multihop` took 0.18 s each beyond that, in which programs start and
are read; its lab was up and certified in 3 s, and joined Swarm in 7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from minigts.experiment_language.model import AnyMeasurement, Experiment
from minigts.experiments.commands import estimate_s, prediction
from minigts.experiments.matrix import Sample, batches, path_between
from minigts.machine import times_seen
from minigts.tools.base import PathUnderTest
from minigts.tools.flows import FlowsOptions
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan

ALIVE = 1 / 130
"""Real seconds for a second of a lab in which an echo goes to and fro now and then."""
A_HOST = 1 / 10_000
"""Real seconds for a second of each host's own timers."""
ON_A_LINK_S, AT_THE_ENDS_S = 2.4e-6, 9e-6
"""Real seconds for a frame."""
A_SAMPLE_S = 0.18
"""Real seconds for starting a sample's programs and for reading what they print."""
A_LAB_S, AN_OVERLAY_S = 3.0, 7.0
"""Real seconds for bringing a lab up with its certificate, and for joining an overlay."""
FRAME_BITS = 1500 * 8
ANSWERS = 0.5
"""How many frames TCP's receiver sends for one that it gets."""
UNLIMITED_MBIT = 1000.0
"""The rate that is assumed where neither the links nor the measurement say one."""


def real_s(experiment: Experiment, plan: Plan, samples: Sequence[Sample]) -> float:
    """Real seconds for these samples with what is around them: a lab, or one for each replicate, and its overlays."""
    labs = len({each.replicate for each in samples})
    joins = [overlay for _, overlay in {(each.replicate, each.overlay) for each in samples}]
    around_s = sum(_joining_s(overlay) for overlay in joins)
    if plan.time == "virtual":
        around_s += A_LAB_S * labs
    return measuring_s(experiment, plan, samples) + around_s


def measuring_s(experiment: Experiment, plan: Plan, samples: Sequence[Sample]) -> float:
    """Real seconds for taking these samples, without lab and overlays."""
    return sum(sample_seconds(experiment, plan, samples).values())


def sample_seconds(experiment: Experiment, plan: Plan, samples: Sequence[Sample]) -> dict[str, float]:
    """Real seconds for taking each of these samples, by its id."""
    seen = times_seen.known_times()

    @lru_cache(maxsize=4096)
    def of(overlay: str, measurement: str, condition: str, source: str, target: str) -> float:
        of_it = experiment.measurement(measurement).under(condition)
        took_s = seen.took_s(_kind(of_it, plan), _key(of_it, plan, overlay, source, target))
        if took_s is not None:
            return took_s
        return _estimate_s(of_it, plan, source, target) * (seen.ratio(_kind(of_it, plan)) or 1.0)

    return {
        each.id: of(each.overlay, each.measurement, each.condition, each.source, each.target) / _sharing(plan, batch)
        for batch in batches(experiment, samples)
        for each in batch
    }


def remember(experiment: Experiment, plan: Plan, batch: Sequence[Sample], seconds: float) -> None:
    """Note how long samples that were taken together took this machine."""
    for each in batch:
        of_it = experiment.measurement(each.measurement).under(each.condition)
        key = _key(of_it, plan, each.overlay, each.source, each.target)
        estimated_s = _estimate_s(of_it, plan, each.source, each.target)
        times_seen.add(_kind(of_it, plan), key, seconds * _sharing(plan, batch) / len(batch), estimated_s)


def _sharing(plan: Plan, batch: Sequence[Sample]) -> int:
    """How many samples pass in the time of one: in real time all that are taken together."""
    return len(batch) if plan.time == "real" else 1


def remember_joining(overlay: str, seconds: float) -> None:
    """Note how long joining an overlay took this machine, with the proof of its data path."""
    times_seen.add("joining", overlay, seconds)


def _joining_s(overlay: str) -> float:
    took_s = times_seen.known_times().took_s("joining", overlay)
    return took_s if took_s is not None else 0.0 if overlay == "none" else AN_OVERLAY_S


def _kind(measurement: AnyMeasurement, plan: Plan) -> str:
    return f"{measurement.tool} in {plan.time} time"


def _key(measurement: AnyMeasurement, plan: Plan, overlay: str, source: str, target: str) -> str:
    """The same for all replicates, and for a lab whose chance alone is another."""
    path = path_between(plan, source, target)
    lab = (plan.name, len(plan.machines), source, target, path.rtt_ms, path.rate_mbit)
    text = "\0".join((measurement.model_dump_json(exclude={"name"}), overlay, *map(str, lab)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _estimate_s(measurement: AnyMeasurement, plan: Plan, source: str, target: str) -> float:
    path = path_between(plan, source, target)
    if plan.time == "real":
        return estimate_s(measurement, path) + (measurement.rest_s or 0.0)
    return _sample_s(measurement, plan, path)


def _sample_s(measurement: AnyMeasurement, plan: Plan, path: Path) -> float:
    lasts_s = estimate_s(measurement, path) + (measurement.rest_s or 0.0)
    frames = _frames_a_second(measurement, plan, path) * lasts_s
    of_frames_s = frames * (AT_THE_ENDS_S + ON_A_LINK_S * len(path.links))
    return A_SAMPLE_S + lasts_s * (ALIVE + A_HOST * len(plan.hosts)) + of_frames_s


def _frames_a_second(measurement: AnyMeasurement, plan: Plan, path: Path) -> float:
    quantity = measurement.instrument.quantity
    if quantity == "latency" and measurement.tool != "ping":  # one transaction after the other
        return 2000 / max(path.rtt_ms, 0.1)
    if isinstance(measurement.options, FlowsOptions):  # together they fill the path
        return (path.rate_mbit or UNLIMITED_MBIT) * 1e6 / FRAME_BITS * (1 + ANSWERS)
    if quantity != "throughput":
        return 0.0
    way = PathUnderTest("", 1500, 1500, path, calls_are_free=True)
    mbit = prediction(measurement, way)
    mbit = UNLIMITED_MBIT if mbit is None else mbit
    return mbit * 1e6 / FRAME_BITS * (1 + ANSWERS)

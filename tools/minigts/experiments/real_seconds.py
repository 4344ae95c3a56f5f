"""How long an experiment in virtual time takes this machine, from what was measured of labs' speed. Pure.

docs/evidence/virtual-time.md has the measurements: an idle lab passes 1160 seconds of its own in a real one with two
hosts, and 168 with fifty; while packets go to and fro now and then it passes some 130; each frame costs 2.4 µs on each
link and 9 µs at its two ends. The 114 samples of `multihop` took 0.18 s each beyond that, in which programs start and
are read; its lab was up and certified in 3 s, and joined Swarm in 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from minigts.experiment_language.model import AnyMeasurement, Experiment
from minigts.experiments.commands import estimate_s, prediction
from minigts.experiments.matrix import Sample, path_between
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
    """Real seconds for taking these samples in virtual time, in a lab of their own, or in one for each replicate."""

    @lru_cache(maxsize=4096)
    def of(measurement: str, condition: str, source: str, target: str) -> float:
        return _sample_s(experiment.measurement(measurement).under(condition), plan, path_between(plan, source, target))

    labs = len({each.replicate for each in samples})
    joins = len({(each.replicate, each.overlay) for each in samples if each.overlay != "none"})
    measuring_s = sum(of(each.measurement, each.condition, each.source, each.target) for each in samples)
    return measuring_s + A_LAB_S * labs + AN_OVERLAY_S * joins


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

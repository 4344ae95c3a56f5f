"""How far a figure may lie from what it is held against, each with who set it."""

from __future__ import annotations

from dataclasses import dataclass

from minigts.topology.parts import Path, Tolerances
from minigts.topology.plan import Plan

FILE, DEFAULT, OURS = "the file's `tolerances:`", "the default `tolerances:`", "docs/decisions/0018-one-judge.md"
CLOCK = "what the clock of virtual time resolves"
CLOCK_MS = 0.002
"""How far a round trip is measured wrong in virtual time, at the most: the program that measures reads the clock before
and after it, 256 ns each time, and prints whole microseconds (docs/virtual-time.md)."""
FRAME_BYTES = 200
"""An exchange's frame has no more: 98 bytes of ping's, 50 of netperf's, and an overlay's headers."""
JITTER_PART = 0.25
"""Of the round trip's declared jitter, added to the tolerance of its median."""


@dataclass(frozen=True)
class Tolerance:
    """`absolute`, in the figure's unit, and `share` of what it is held against; `source` says who set them.

    `jitter_ms` is added for round trips over links with jitter.
    """

    absolute: float
    share: float
    unit: str
    source: str
    jitter_ms: float = 0.0

    def of(self, reference: float) -> float:
        """How far from `reference` is allowed, in the unit of both."""
        return self.absolute + self.share * reference + self.jitter_ms

    def allows(self, measured: float, reference: float) -> bool:
        return abs(measured - reference) <= self.of(reference)

    @property
    def in_words(self) -> str:
        """`0.2 ms + 1 %`"""
        parts = [f"{self.absolute:g} {self.unit}"] if self.absolute else []
        parts += [f"{100 * self.share:g} %"] if self.share or not parts else []
        parts += ["a quarter of the jitter"] if self.jitter_ms else []
        return " + ".join(parts)


@dataclass(frozen=True)
class Band:
    """From `low` to `high` as shares of what a figure is held against; `source` says who set them."""

    low: float
    high: float
    source: str

    def allows(self, measured: float, reference: float) -> bool:
        return self.allows_between(measured, reference, reference)

    def allows_between(self, measured: float, least: float, most: float) -> bool:
        """Of what is held against all from `least` to `most`."""
        return self.low <= measured / least and measured / most <= self.high

    @property
    def in_words(self) -> str:
        """`85% to 102%`"""
        return f"{self.low:.0%} to {self.high:.0%}"


CEILING = Band(0.85, 1.02, OURS)
"""TCP's start and its recoveries cost up to 15 %; what a queue held back at the end counts too, up to 2 %."""
SLIGHT = Tolerance(0.0, 0.10, "", OURS)
"""A change of up to a tenth from the first hop to the last is slight."""


def round_trip(plan: Plan | None, path: Path | None = None) -> Tolerance:
    """Of a median round trip over `path`, in ms, around what the plan declares or what its segments add up to.

    It is the file's `tolerances: {rtt: …}`, and a quarter of the jitter declared on the way. Without a plan, as in the
    results of long ago, it is the default.
    """
    set_ = plan.tolerances if plan else Tolerances()
    jitter_ms = sum(end.outgoing.jitter_ms for end in plan.ends_on(path)) if plan and path else 0.0
    return Tolerance(set_.rtt_ms, set_.rtt_percent / 100, "ms", _source(set_), JITTER_PART * jitter_ms)


def exchanged(plan: Plan, path: Path | None, figures: int, *, frames: bool = False) -> Tolerance:
    """Of a round trip over `path` that is held against something: in real time `round_trip`, in virtual time what the
    clock resolves for each of the measured `figures` on both sides, and with `frames` the frames' own time on the links
    both ways, which nothing declares.

    Where a host on the way has modelled system calls, those of the program that measures are in every figure, and how
    many they are nobody declares: then it is `round_trip` in virtual time, too."""
    if plan.time == "real" or longest_call_ns(plan, path):
        return round_trip(plan, path)
    both_ways = plan.ends_on(path) if path else []
    rates = [end.outgoing.rate_mbit for end in both_ways if end.outgoing.rate_mbit is not None]
    own_ms = sum(FRAME_BYTES * 8 / (1000 * rate_mbit) for rate_mbit in rates) if frames else 0.0
    jitter_ms = sum(end.outgoing.jitter_ms for end in both_ways)
    return Tolerance(figures * CLOCK_MS + own_ms, 0.0, "ms", CLOCK, JITTER_PART * jitter_ms)


def longest_call_ns(plan: Plan, path: Path | None) -> int:
    """What a system call takes on the slowest host of the way in virtual time; 0 where they are free."""
    ends = {end for link in plan.links if path and link.name in path.links for end in link.ends}
    calls = (host.processor.call_ns for host in plan.hosts if host.name in ends and host.processor is not None)
    return max(calls, default=0) if plan.time == "virtual" else 0


def rate(plan: Plan) -> Tolerance:
    """Of one TCP measurement around what the rate leaves for payload: the file's `tolerances: {rate: …}`."""
    return Tolerance(0.0, plan.tolerances.rate_percent / 100, "Mbit/s", _source(plan.tolerances))


def loss(plan: Plan) -> Tolerance:
    """Of a link's loss, in points of a per cent: the file's `tolerances: {loss: …}`."""
    return Tolerance(plan.tolerances.loss_points, 0.0, "points", _source(plan.tolerances))


def _source(tolerances: Tolerances) -> str:
    return DEFAULT if tolerances == Tolerances() else FILE

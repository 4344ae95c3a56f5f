"""How far a figure may lie from its reference; each tolerance says who set it."""

from __future__ import annotations

from dataclasses import dataclass

from minigts.language.figures import digits
from minigts.topology.facts.links.jitter import QUARTER
from minigts.topology.plan.elements import Path, Port, Tolerances
from minigts.topology.plan.plan import Plan

FILE, DEFAULT, OURS = "the file's `tolerances:`", "the default `tolerances:`", "docs/decisions/judge.md"
CLOCK = "what the clock of virtual time resolves"
CLOCK_MS = 0.002
"""The largest error of a round trip in virtual time: the measuring program reads the clock before and after it, 256 ns
each time, and prints whole microseconds (docs/virtual-time.md)."""
FRAME_BYTES = 200
"""The largest frame of an exchange: ping's has 98 bytes, netperf's 50, and an overlay adds its headers."""
_QUARTER = "a quarter of the jitter"


@dataclass(frozen=True)
class Tolerance:
    """`absolute`, in the figure's unit, plus `share` of the reference; `source` says who set them.

    `jitter_ms` is added for round trips over links with jitter.
    """

    absolute: float
    share: float
    unit: str
    source: str
    jitter_ms: float = 0.0
    jitter_in_words: str = _QUARTER

    def distance(self, reference: float) -> float:
        """The allowed distance from `reference`, in the same unit."""
        return self.absolute + self.share * reference + self.jitter_ms

    def allows(self, measured: float, reference: float) -> bool:
        return abs(measured - reference) <= self.distance(reference)

    @property
    def in_words(self) -> str:
        """`0.2 ms + 1 %`"""
        parts = [f"{self.absolute:g} {self.unit}"] if self.absolute else []
        parts += [f"{100 * self.share:g} %"] if self.share or not parts else []
        parts += [self.jitter_in_words] if self.jitter_ms else []
        return " + ".join(parts)


@dataclass(frozen=True)
class Band:
    """From `low` to `high`, as shares of the reference; `source` says who set them."""

    low: float
    high: float
    source: str

    def allows(self, measured: float, reference: float) -> bool:
        return self.allows_between(measured, reference, reference)

    def allows_between(self, measured: float, least: float, most: float) -> bool:
        """Whether `measured` lies in the band around a reference that may be anything from `least` to `most`."""
        return self.low <= measured / least and measured / most <= self.high

    @property
    def in_words(self) -> str:
        """`85% to 102%`"""
        return f"{self.low:.0%} to {self.high:.0%}"


CEILING = Band(0.85, 1.02, OURS)
"""TCP's start and its recoveries cost up to 15 %; data that still lay in a queue at the end adds up to 2 %."""
SLIGHT = Tolerance(0.0, 0.10, "", OURS)
"""A change of up to a tenth from the first hop to the last is slight."""


def round_trip(plan: Plan | None, path: Path | None = None) -> Tolerance:
    """The tolerance of a median round trip over `path`, in ms, around the declared one or the sum of its segments.

    It is the file's `tolerances: {rtt: …}` plus a part of the jitter declared on the path, mostly a quarter. Without a
    plan, as in old results, it is the default.
    """
    set_ = plan.tolerances if plan else Tolerances()
    return Tolerance(set_.rtt_ms, set_.rtt_percent / 100, "ms", _source(set_), *_jitter(plan, path))


def exchange_tolerance(plan: Plan, path: Path | None, figures: int, *, frames: bool = False) -> Tolerance:
    """The tolerance of a comparison of round trips over `path`, in ms. In real time it is that of `round_trip`. In
    virtual time it is the clock's resolution for each of the measured `figures` on both sides; with `frames`, plus the
    frames' transmission time on the links in both directions, which the declared delays leave out.

    Where a host on the path has modelled system calls, every figure has an unknown number of them, those of the
    measuring program: then the tolerance is that of `round_trip` in virtual time, too."""
    if plan.time == "real" or longest_call_ns(plan, path):
        return round_trip(plan, path)
    own_ms = plan.most_of(path, _frame_ms) if path and frames else 0.0
    return Tolerance(figures * CLOCK_MS + own_ms, 0.0, "ms", CLOCK, *_jitter(plan, path))


def _jitter(plan: Plan | None, path: Path | None) -> tuple[float, str]:
    """What the links' jitter in both directions adds to the tolerance of a median, in ms and in words."""
    if plan is None or path is None:
        return 0.0, _QUARTER
    jitter_ms = plan.most_of(path, lambda end: end.outgoing.median_jitter_ms)
    plain = jitter_ms == QUARTER * plan.most_of(path, lambda end: end.outgoing.jitter_ms)
    return jitter_ms, _QUARTER if plain else f"{digits(jitter_ms, 3)} ms for the jitter"


def _frame_ms(end: Port) -> float:
    """What the link adds for the frame of an exchange."""
    rate_mbit = end.outgoing.rate_mbit
    return 0.0 if rate_mbit is None else FRAME_BYTES * 8 / (1000 * rate_mbit)


def longest_call_ns(plan: Plan, path: Path | None) -> int:
    """The time of a system call in virtual time on the path's slowest host, in ns; 0 where calls take no time."""
    ends = {end for link in plan.links if path and link.name in path.crossed for end in link.ends}
    calls = (host.processor.call_ns for host in plan.hosts if host.name in ends and host.processor is not None)
    return max(calls, default=0) if plan.time == "virtual" else 0


def rate(plan: Plan) -> Tolerance:
    """The tolerance of one TCP measurement around the goodput that the rate allows: `tolerances: {rate: …}`."""
    return Tolerance(0.0, plan.tolerances.rate_percent / 100, "Mbit/s", _source(plan.tolerances))


def loss(plan: Plan) -> Tolerance:
    """The tolerance of a link's loss, in percentage points: the file's `tolerances: {loss: …}`."""
    return Tolerance(plan.tolerances.loss_points, 0.0, "points", _source(plan.tolerances))


def _source(tolerances: Tolerances) -> str:
    return DEFAULT if tolerances == Tolerances() else FILE

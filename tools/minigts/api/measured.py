"""Measurements between two hosts or two containers, with the values that the plan predicts."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from minigts import lab as labs
from minigts import overlays
from minigts.dataplane.round_trip import echo_ms
from minigts.errors import InputError, MinigtsError
from minigts.experiments.commands import buffers_of, outer_mtu, underlay_mtu
from minigts.fidelity.rates import SLOW_START_ROUND_TRIPS, serve
from minigts.foreign import parser_text
from minigts.judge import tolerances
from minigts.judge.tolerances import CEILING
from minigts.lab import Lab, calibration
from minigts.language.figures import digits
from minigts.overlays import Endpoint
from minigts.overlays.catalogue import HEADER_BYTES
from minigts.tools import iperf3_tcp
from minigts.tools.base import PathUnderTest
from minigts.tools.cpu_bound import unlimited_tcp
from minigts.tools.iperf3_tcp import TcpOptions
from minigts.topology.frames import family_of
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan

PROBES = 60
SERVER_PORT = 5290
"""The port of a server for one measurement between hosts; containers have a server that always runs."""
START_TIMEOUT_S = 30.0
EXACT_MS = 0.002
"""The tolerance in virtual time: a guest's clock has steps of 256 ns, and a program reads it twice."""
PLAIN_HOSTS = "plain hosts"


@dataclass(frozen=True, repr=False)
class RoundTrips:
    """Echo requests from `source` to `target` over `over`: `plain hosts`, or an overlay's name.

    `rtts_ms` are the RTTs of requests that were answered, of `sent`. `expected_ms` is the sum of the links' delays as
    they are set now, in virtual time with the frames' transmission times. `tolerance_ms` is how far the median may be
    from it: 2 microseconds in virtual time; the topology's `tolerances:` in real time, with jitter, and over an overlay
    whose headers are not known.
    """

    source: str
    target: str
    over: str
    sent: int
    rtts_ms: tuple[float, ...]
    expected_ms: float
    tolerance_ms: float

    @property
    def median_ms(self) -> float:
        """The median RTT; NaN when nothing was answered."""
        return statistics.median(self.rtts_ms) if self.rtts_ms else math.nan

    @property
    def lowest_ms(self) -> float:
        """The lowest RTT; NaN when nothing was answered."""
        return min(self.rtts_ms, default=math.nan)

    @property
    def lost(self) -> int:
        return self.sent - len(self.rtts_ms)

    @property
    def loss_percent(self) -> float:
        return 100 * self.lost / self.sent

    @property
    def as_expected(self) -> bool:
        """Whether the median lies within the tolerance; False when nothing was answered."""
        return abs(self.median_ms - self.expected_ms) <= self.tolerance_ms

    def __str__(self) -> str:
        wanted = f"; expected {self.expected_ms:.4f} ± {digits(self.tolerance_ms, 4)} ms"
        answered = f"median {self.median_ms:.4f} ms of {self.sent}, {self.lost} lost"
        return f"{self.source} to {self.target} over {self.over}: {answered}{wanted}"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, repr=False)
class Throughput:
    """One TCP flow from `source` to `target`; `mbit` is the payload that arrived, in Mbit/s. `ceiling_mbit` is the most
    that the path's links as they are set now and the two hosts' TCP buffers allow; None where the links have no rate.
    Where the buffers may be the limit, `least_mbit` is the least that they carry.
    """

    source: str
    target: str
    over: str
    mbit: float
    ceiling_mbit: float | None
    least_mbit: float | None = None

    @property
    def reaches_ceiling(self) -> bool:
        """Whether `mbit` is 85 to 102 % of the ceiling, or with `least_mbit` between 85 % of that and 102 % of the
        ceiling; False without a ceiling."""
        if self.ceiling_mbit is None:
            return False
        least_mbit = self.ceiling_mbit if self.least_mbit is None else self.least_mbit
        return CEILING.allows_between(self.mbit, least_mbit, self.ceiling_mbit)

    def __str__(self) -> str:
        wanted = "" if self.ceiling_mbit is None else f"; the ceiling is {self.ceiling_mbit:.2f} Mbit/s"
        if self.least_mbit is not None:
            wanted += f" by the hosts' TCP buffers, which carry at least {self.least_mbit:.2f}"
        return f"{self.source} to {self.target} over {self.over}: {self.mbit:.2f} Mbit/s of TCP{wanted}"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True)
class _Way:
    """The path of a measurement: its two ends, and what it runs over."""

    plan: Plan
    path: Path
    over: str
    source: Endpoint
    target: Endpoint
    exact: bool
    """Whether the expected RTT is known to the nanosecond."""
    added_bytes: int = 0
    """The bytes that the overlay adds to a frame; where the program decides that, by how much its MTU is smaller."""


def round_trips(
    lab: Lab, source: str, target: str, *, containers: bool, count: int, interval_s: float | None
) -> RoundTrips:
    """Measure RTTs. Raises InputError where `source` does not reach `target`, and what `Provider.run` raises."""
    way = _way(lab, source, target, containers=containers)
    address, inside = way.target.address, way.source.network
    calibration.probe(lab.provider, source, address, count=1, prefix=inside)  # the first packet pays for ARP
    measured = calibration.probe(lab.provider, source, address, count=count, interval_s=interval_s, prefix=inside)
    expected_ms = _expected_ms(way)
    return RoundTrips(
        source=source,
        target=target,
        over=way.over,
        sent=measured.sent,
        rtts_ms=measured.rtts_ms,
        expected_ms=expected_ms,
        tolerance_ms=_tolerance_ms(way, expected_ms),
    )


def throughput(
    lab: Lab, source: str, target: str, *, containers: bool, seconds: int, slow_start_s: int | None
) -> Throughput:
    """Measure one TCP flow. Raises InputError where `source` does not reach `target`, and where nothing limits TCP;
    MinigtsError when nothing arrives."""
    way = _way(lab, source, target, containers=containers)
    if why := unlimited_tcp(way.plan, way.path):
        raise InputError(why)
    if slow_start_s is None:
        slow_start_s = max(1, math.ceil(SLOW_START_ROUND_TRIPS * way.path.rtt_ms / 1000))
    options = TcpOptions(duration=f"{seconds}s", omit=f"{slow_start_s}s" if slow_start_s else None)
    mtu, outer, buffers = way.source.mtu, underlay_mtu(lab.plan), buffers_of(lab.plan, source, target)
    if containers:
        outer = outer_mtu(mtu, outer, [overlays.find(way.over).data_path.encapsulation])
        asked = PathUnderTest(way.target.address, mtu, outer, way.path, buffers=buffers)
    else:
        asked = PathUnderTest(way.target.address, mtu, outer, way.path, SERVER_PORT, buffers=buffers)
        serve(lab, target, SERVER_PORT)
    argv = (*way.source.prefix, *iperf3_tcp.TOOL.argv(options, asked))
    result = lab.provider.run(source, argv, timeout_s=START_TIMEOUT_S + seconds + slow_start_s, check=False)
    return Throughput(
        source=source,
        target=target,
        over=way.over,
        mbit=round(iperf3_tcp.TOOL.read(parser_text(result.stdout), parser_text(result.stderr)).value, 4),
        ceiling_mbit=iperf3_tcp.TOOL.predicted(options, asked),
        least_mbit=iperf3_tcp.TOOL.least(options, asked),
    )


def end_of(lab: Lab, host: str) -> tuple[str, Endpoint]:
    """The overlay that is joined, and its container on that host. Raises MinigtsError when there is none."""
    joined = overlays.joined_overlay(lab)
    if joined is None or not joined.ends:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}, so there are no containers")
    return joined.name, joined.endpoints()[host]


def _way(lab: Lab, source: str, target: str, *, containers: bool) -> _Way:
    plan = labs.plan_now(lab.plan, lab.read_record())
    if source == target:
        raise InputError(f"{source} is both source and target: name two hosts")
    try:
        path = plan.path(source, target)
    except KeyError:
        raise InputError(f"nothing joins {source} and {target}") from None
    virtual = plan.time == "virtual"
    if containers:
        over, start = end_of(lab, source)
        _, end = end_of(lab, target)
        added_bytes = HEADER_BYTES.get(overlays.find(over).data_path.encapsulation)
        exact = virtual and added_bytes is not None
        added_bytes = underlay_mtu(plan) - start.mtu if added_bytes is None else added_bytes
        return _Way(plan, path, over, start, end, exact, added_bytes)
    if not path.reachable:
        raise InputError(
            f"{source} does not reach {target} over plain hosts: in mode neighbours only an overlay joins them"
        )
    mtu = underlay_mtu(plan)
    start = Endpoint(source, plan.own_address(source), mtu, ())
    return _Way(plan, path, PLAIN_HOSTS, start, Endpoint(target, plan.address_over(path), mtu, ()), exact=virtual)


def _expected_ms(way: _Way) -> float:
    if way.plan.time == "real":
        return way.path.rtt_ms
    return echo_ms(way.plan, way.path, added_bytes=way.added_bytes, family=family_of(way.target.address))


def _tolerance_ms(way: _Way, expected_ms: float) -> float:
    by_file = tolerances.round_trip(way.plan, way.path)
    return EXACT_MS if way.exact and not by_file.jitter_ms else by_file.distance(expected_ms)

"""The emulator's own latency: what a link takes beyond its declared delay, measured so that it can be taken off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from minigts.dataplane.shaping import added_delay_ms
from minigts.errors import HostFailed, InputError, reading_from
from minigts.language import documents
from minigts.providers.base import Provider
from minigts.topology.frames import family_of
from minigts.topology.parts import Path
from minigts.topology.plan import Plan

WINDOWS = 3
PROBES = 40
AGREEMENT_MS = 0.04
"""How near each other the two lowest windows are, for each hop, when nothing else uses the machine."""
CALLS = 5
"""How often the windows are measured at the most."""
PROBE = "/usr/lib/minigts/probe"


class _Answer(BaseModel):
    sent: int
    rtts_us: list[float]


@dataclass(frozen=True)
class RoundTrips:
    """Every answered probe's RTT in milliseconds, in order of arrival, out of `sent` probes."""

    sent: int
    rtts_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.rtts_ms)


def probe(
    provider: Provider,
    host: str,
    address: str,
    *,
    count: int,
    interval_s: float | None = None,
    prefix: tuple[str, ...] = (),
) -> RoundTrips:
    """Send `count` echo requests from `host` to `address`, at the provider's own pace if no other is asked for; see
    provision/agent/src/probe.rs.
    """
    if family_of(address) == "ipv6":
        raise InputError(f"{address}: this is measured over IPv4 alone; over IPv6 by `ping`, or by an experiment")
    pace_s = provider.pace_s if interval_s is None else interval_s
    argv = [*prefix, PROBE, address, str(count), str(pace_s)]
    said = provider.run(host, argv, timeout_s=count * pace_s + 30).stdout
    with reading_from(host, "what it says of its echo requests"):
        answer = documents.model(said, _Answer)
        return RoundTrips(answer.sent, tuple(rtt_us / 1000 for rtt_us in answer.rtts_us))


def emulator_overhead_ms(provider: Provider, plan: Plan, among: Sequence[Path], taken_off_ms: float = 0.0) -> float:
    """What the RTT over a path exceeds its declared RTT, for one link and one way; 0 if no link has a delay to take it
    off, or no two hosts reach each other.

    The RTT is the lowest of three windows' lower quartiles, since a busy machine only ever adds. As long as the two
    lowest are apart, three more are measured: what a busy machine adds must not be taken off the link for good.

    Call it when links are shaped as declared, but for `taken_off_ms` of each delay. A provider makes all links alike,
    so one path stands for all: the one with the most hops, of those without loss or jitter if there are any. What the
    two hosts at its ends take themselves then weighs least, and does not add up over hops. Raises HostFailed.
    """
    paths = [path for path in among if path.reachable]
    if not paths or not any(link.rtt_ms > 0 for link in plan.links):
        return 0.0
    path = min(paths, key=lambda path: (_random(plan, path), -path.hops))
    delays_ms = sum(added_delay_ms(port.incoming, taken_off_ms) for port in plan.ends_on(path))
    count = WINDOWS * PROBES
    quartiles_ms: list[float] = []
    for _ in range(CALLS):
        round_trips = probe(provider, path.source, plan.address_over(path), count=count)
        if len(round_trips.rtts_ms) < 2:
            answered = f"{len(round_trips.rtts_ms)} of {count} echo requests answered"
            raise HostFailed(f"the path from {path.source} to {path.target} carries next to nothing: {answered}")
        quartiles_ms = sorted([*quartiles_ms, *_quartiles_ms(round_trips.rtts_ms)])
        if len(quartiles_ms) < 2 or quartiles_ms[1] - quartiles_ms[0] <= AGREEMENT_MS * path.hops:
            break
    return round(max(0.0, (quartiles_ms[0] - delays_ms) / (2 * path.hops)), 4)


def _quartiles_ms(rtts_ms: Sequence[float]) -> list[float]:
    """Every window's lower quartile; what is left behind the last whole window is left out."""
    size = max(2, len(rtts_ms) // WINDOWS)
    starts = range(0, max(1, len(rtts_ms) - size + 1), size)
    return [statistics.quantiles(rtts_ms[start : start + size], n=4)[0] for start in starts]


def _random(plan: Plan, path: Path) -> bool:
    """Whether the path loses packets or delays them by chance."""
    return path.lossy or not plan.in_order(path) or any(port.incoming.jitter_ms > 0 for port in plan.ends_on(path))

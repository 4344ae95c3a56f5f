"""The emulator's own latency: what a link takes beyond its declared delay, measured so that it can be taken off."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from minigts.errors import HostFailed
from minigts.providers.base import Provider
from minigts.topology.plan import Link, Plan

WINDOWS = 3
PROBES = 40
AGREEMENT_MS = 0.04
"""How near each other the two lowest windows are when nothing else uses the machine."""
CALLS = 5
"""How often the windows are measured at the most."""
INTERVAL_S = 0.004
"""Short enough that no host falls asleep between two probes, so that the quartile is that of a path in use."""
PROBE = "/usr/lib/minigts/probe.py"


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
    provider: Provider, host: str, address: str, *, count: int, interval_s: float, prefix: tuple[str, ...] = ()
) -> RoundTrips:
    """Send `count` echo requests from `host` to `address`; see provision/image/probe.py."""
    argv = [*prefix, PROBE, address, str(count), str(interval_s)]
    said = provider.run(host, argv, timeout_s=count * interval_s + 30).stdout
    answer = _Answer.model_validate_json(said)
    return RoundTrips(answer.sent, tuple(rtt_us / 1000 for rtt_us in answer.rtts_us))


def own_latency_ms(provider: Provider, plan: Plan) -> float:
    """Half of what the RTT over one link exceeds its declared RTT; 0 if no link has a delay to take it off.

    The RTT is the lowest of three windows' lower quartiles, since a busy machine only ever adds. As long as the two
    lowest are apart, three more are measured: what a busy machine adds must not be taken off the link for good.

    Call it when links are shaped as declared. A provider makes all links alike, so one stands for all: the first that
    has a delay and no loss or jitter, else the first that has a delay.
    """
    delayed = [link for link in plan.links if link.rtt_ms > 0]
    if not delayed:
        return 0.0
    link = min(delayed, key=lambda link: (link.loss_percent > 0 or _jitter(plan, link), link.index))
    count = WINDOWS * PROBES
    quartiles_ms: list[float] = []
    for _ in range(CALLS):
        rtts_ms = probe(provider, link.ends[0], plan.far_address(link), count=count, interval_s=INTERVAL_S).rtts_ms
        if len(rtts_ms) < 2:
            answered = f"{len(rtts_ms)} of {count} echo requests answered"
            raise HostFailed(f"link {link.name} carries next to nothing: {answered}")
        quartiles_ms = sorted([*quartiles_ms, *_quartiles_ms(rtts_ms)])
        if len(quartiles_ms) < 2 or quartiles_ms[1] - quartiles_ms[0] <= AGREEMENT_MS:
            break
    return round(max(0.0, (quartiles_ms[0] - link.rtt_ms) / 2), 4)


def _quartiles_ms(rtts_ms: Sequence[float]) -> list[float]:
    """Every window's lower quartile; what is left behind the last whole window is left out."""
    size = max(2, len(rtts_ms) // WINDOWS)
    starts = range(0, max(1, len(rtts_ms) - size + 1), size)
    return [statistics.quantiles(rtts_ms[start : start + size], n=4)[0] for start in starts]


def _jitter(plan: Plan, link: Link) -> bool:
    return any(port.outgoing.jitter_ms > 0 for port in plan.machine(link.ends[0]).ports if port.link == link.name)

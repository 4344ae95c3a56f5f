"""The emulator's own latency: what a link takes beyond its declared delay, measured so that it can be taken off."""

from __future__ import annotations

import re

from minigts.providers.base import Provider
from minigts.topology.plan import Link, Plan, Port

MEASURE_S = 0.4
PORT = 12864
"""Not netserver's usual port, which belongs to the experiments."""
_ANSWER = re.compile(r"^P50_LATENCY=([0-9.]+)$", re.MULTILINE)


def own_latency_ms(provider: Provider, plan: Plan) -> float:
    """Half of what the median RTT over the shortest delayed link exceeds its declared RTT; 0 if no link has a delay.

    Call it when links are shaped as declared. The provider starts all hosts alike, so one link stands for all.
    """
    delayed = [link for link in plan.links if link.rtt_ms > 0]
    if not delayed:
        return 0.0
    link = min(delayed, key=lambda link: (link.rtt_ms, link.index))
    return max(0.0, (_median_rtt_ms(provider, plan, link) - link.rtt_ms) / 2)


def _median_rtt_ms(provider: Provider, plan: Plan, link: Link) -> float:
    source, target = link.ends
    address = _port(plan, source, link.name).peer_address
    serve = ["netserver", "-4", "-p", str(PORT)]
    provider.run(target, serve, timeout_s=10)
    try:
        transactions = max(10, round(MEASURE_S * 1000 / link.rtt_ms))
        ask = ["netperf", "-4", "-H", address, "-p", str(PORT), "-t", "UDP_RR", "-l", f"-{transactions}", "-P", "0"]
        said = provider.run(source, [*ask, "--", "-k", "P50_LATENCY"], timeout_s=30).stdout
    finally:
        provider.run(target, ["pkill", "-f", f"netserver -4 -p {PORT}"], timeout_s=10, check=False)
    found = _ANSWER.search(said)
    if found is None:
        raise ValueError(said)
    return float(found[1]) / 1000


def _port(plan: Plan, host: str, link: str) -> Port:
    return next(port for port in plan.host(host).ports if port.link == link)

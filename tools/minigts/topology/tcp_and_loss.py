"""What losses leave of TCP's goodput in the mean. Pure."""

from __future__ import annotations

import math

from minigts.topology.frames import IP_HEADER_BYTES, TCP_HEADER_BYTES
from minigts.topology.plan.elements import Direction, Path
from minigts.topology.plan.plan import Plan
from minigts.topology.sysctls import set_to

CONGESTION = "net.ipv4.tcp_congestion_control"
KNOWN = ("cubic", "reno")
"""The congestion controls whose response to losses is known here; CUBIC is the kernel's default."""


def response_mbit(segment_bytes: int, rtt_ms: float, loss_percent: float) -> float:
    """What a long flow has in the mean, in Mbit/s, where each segment is lost on its own with this chance and nothing
    else limits it; infinity without loss or round trip. It is the larger of Reno's response, which CUBIC keeps to on
    short ways (M. Mathis and others: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 27(3),
    1997), and of CUBIC's own (RFC 9438, section 5.1, C = 0.4 and beta = 0.7). `minigts validate` holds labs against
    both.
    """
    if not loss_percent or not rtt_ms:
        return math.inf
    lost, rtt_s = loss_percent / 100, rtt_ms / 1000
    reno = math.sqrt(1.5 / lost)
    cubic = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (rtt_s / lost) ** 0.75
    return float(max(reno, cubic)) * segment_bytes * 8 / (rtt_s * 1e6)


def tcp_by_loss(plan: Plan, path: Path, way: Path | Direction) -> float:
    """What losses on one way of a path leave of TCP, in Mbit/s; infinity where they are no limit, or where a host's
    congestion control is another than Reno and CUBIC."""
    used = {set_to(plan.host(name).sysctls).get(CONGESTION, KNOWN[0]) for name in (path.source, path.target)}
    if not used <= {*KNOWN}:
        return math.inf
    mtu = min(end.mtu for end in plan.ends_on(path))
    return response_mbit(mtu - TCP_HEADER_BYTES - IP_HEADER_BYTES[plan.family], path.rtt_ms, way.loss_percent)

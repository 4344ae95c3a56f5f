"""The plan's prediction for TCP, whichever tool sends it."""

from __future__ import annotations

from minigts.tools.base import PathUnderTest
from minigts.topology.frames import tcp_ceiling_mbit
from minigts.topology.tcp import Goodput, between, goodput


def tcp_goodput(way: PathUnderTest, *, asked_bytes: int | None = None, streams: int = 1) -> Goodput | None:
    """The lowest rate times payload over frame size. The payload is the overlay's MTU less the IP and TCP headers with
    timestamps (52 bytes, over IPv6 72). The buffers of both hosts, or those that the sockets ask for, may lower it.
    None where there is no rate, and where acknowledgements are the limit."""
    there, back = way.path.ways
    by_links = tcp_ceiling_mbit(there.rate_mbit, back.rate_mbit, way.mtu, way.outer_mtu, way.family)
    if by_links is None or way.buffers is None:
        return None if by_links is None else Goodput(by_links, None)
    sender, receiver = (each if asked_bytes is None else each.asked(asked_bytes) for each in way.buffers)
    return goodput(by_links, between(sender, receiver), way.path.rtt_ms, streams)

"""What a link leaves for payload: of UDP in datagrams, by their size, and of TCP."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator

from minigts.language.fields import text_schema
from minigts.language.quantities import DATAGRAM_BYTES, DATAGRAM_PACKETS
from minigts.tools.base import PathUnderTest
from minigts.tools.options import either
from minigts.topology.frames import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, TCP_HEADER_BYTES, Family, tcp_ceiling_mbit
from minigts.topology.tcp import Goodput, goodput, window_between

FIT, DEFAULT = "fit", "default"
FRAGMENT_HEADER_BYTES = 8
"""The IPv6 header of each fragment (RFC 8200, section 4.5); IPv4 has its fields in every header."""


def datagram_bytes(datagram: str, mtu: int, family: Family = "ipv4") -> int:
    """The payload of a datagram. `1400B` → 1400; `fit` → what one packet of `mtu` bytes holds after its IP and UDP
    headers (28 bytes in IPv4); `3 packets` → what three hold, where every fragment but the last carries a multiple of
    eight bytes (RFC 791); `default` → iperf3's own choice, the segment size of its control connection (iperf3(1))."""
    if datagram == DEFAULT:
        return mtu - IP_HEADER_BYTES[family] - TCP_HEADER_BYTES
    if datagram != FIT and "packet" not in datagram:
        return DATAGRAM_BYTES.parse_whole(datagram)
    packets = 1 if datagram == FIT else DATAGRAM_PACKETS.parse_whole(datagram)
    room = _room(mtu, packets, family)
    return (packets - 1) * (room // 8 * 8) + room - 8


def _room(mtu: int, packets: int, family: Family) -> int:
    """How many bytes of a datagram, its UDP header included, fit into each of its packets."""
    return mtu - IP_HEADER_BYTES[family] - (FRAGMENT_HEADER_BYTES if family == "ipv6" and packets > 1 else 0)


def carried_mbit(datagram: str, way: PathUnderTest) -> float | None:
    """The payload in Mbit/s that the path's lowest rate can carry with such datagrams; None without a rate."""
    if way.path.rate_mbit is None:
        return None
    size = datagram_bytes(datagram, way.mtu, way.family)
    whole = size + 8 <= _room(way.mtu, 1, way.family)
    room = _room(way.mtu, 1 if whole else 2, way.family)
    fragments = math.ceil((size + 8) / room)
    frame_bytes = size + 8 + fragments * (way.mtu - room + ETHERNET_HEADER_BYTES + max(0, way.outer_mtu - way.mtu))
    return way.path.rate_mbit * size / frame_bytes


def _datagram(value: object) -> str:
    if value in (FIT, DEFAULT):
        return str(value)
    return (DATAGRAM_PACKETS if isinstance(value, str) and "packet" in value else DATAGRAM_BYTES).normal(value)


Datagram = Annotated[
    str,
    BeforeValidator(_datagram),
    text_schema(either(FIT, DEFAULT, DATAGRAM_BYTES, DATAGRAM_PACKETS), "1400B", FIT, "3packets", DEFAULT),
]


def tcp_goodput(way: PathUnderTest, *, asked_bytes: int | None = None, streams: int = 1) -> Goodput | None:
    """The lowest rate times payload over frame size. The payload is the overlay's MTU less the IP and TCP headers with
    timestamps (52 bytes, over IPv6 72). The buffers of both hosts, or those that the sockets ask for, may lower it.
    None where there is no rate, and where acknowledgements are the limit."""
    there, back = way.path.ways
    by_links = tcp_ceiling_mbit(there.rate_mbit, back.rate_mbit, way.mtu, way.outer_mtu, way.family)
    if by_links is None or way.buffers is None:
        return None if by_links is None else Goodput(by_links, None)
    sender, receiver = (each if asked_bytes is None else each.request(asked_bytes) for each in way.buffers)
    return goodput(by_links, window_between(sender, receiver), way.path.rtt_ms, streams)

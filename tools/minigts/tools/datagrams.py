"""The sizes of datagrams, as options of tools have them, and what a link carries of such datagrams."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator

from minigts.language.fields import written
from minigts.language.quantities import DATAGRAM_BYTES, DATAGRAM_PACKETS
from minigts.tools.base import PathUnderTest
from minigts.tools.options import either
from minigts.topology.frames import ETHERNET_HEADER_BYTES, TCP_AND_IP_HEADERS_BYTES

FIT, DEFAULT = "fit", "default"


def datagram_bytes(datagram: str, mtu: int) -> int:
    """`1400B` → 1400; `fit` → what one packet of `mtu` bytes holds beside 28 bytes of IP and UDP headers; `3 packets`
    → what three hold: every fragment but the last carries a multiple of eight bytes (RFC 791); `default` → what iperf3
    takes by itself, the segment size of its control connection (iperf3(1), --length)."""
    if datagram == DEFAULT:
        return mtu - TCP_AND_IP_HEADERS_BYTES
    if datagram != FIT and "packet" not in datagram:
        return DATAGRAM_BYTES.parse_whole(datagram)
    packets = 1 if datagram == FIT else DATAGRAM_PACKETS.parse_whole(datagram)
    return (packets - 1) * ((mtu - 20) // 8 * 8) + (mtu - 20) - 8


def carried_mbit(datagram: str, way: PathUnderTest) -> float | None:
    """How much of their payload the path's lowest rate carries at most; None without a rate."""
    if way.path.rate_mbit is None:
        return None
    size = datagram_bytes(datagram, way.mtu)
    fragments = math.ceil((size + 8) / (way.mtu - 20))
    frame_bytes = size + 8 + fragments * (20 + ETHERNET_HEADER_BYTES + max(0, way.outer_mtu - way.mtu))
    return way.path.rate_mbit * size / frame_bytes


def _datagram(value: object) -> str:
    if value in (FIT, DEFAULT):
        return str(value)
    return (DATAGRAM_PACKETS if isinstance(value, str) and "packet" in value else DATAGRAM_BYTES).normal(value)


Datagram = Annotated[
    str,
    BeforeValidator(_datagram),
    written(either(FIT, DEFAULT, DATAGRAM_BYTES, DATAGRAM_PACKETS), "1400B", FIT, "3packets", DEFAULT),
]

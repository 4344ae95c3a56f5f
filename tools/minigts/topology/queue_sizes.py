"""How large the queue of a link is: in bytes, in packets, or in the time that the last of them waits. Pure.

A plan always has it in bytes, too: packets count as full frames, and a time as what the rate sends in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from minigts.language.quantities import QUEUE_MS, QUEUE_PACKETS
from minigts.topology.setting import Setting, Way, WireField

V = TypeVar("V")

_SPARE_MS = 20.0
_SMALLEST_BYTES = 64_000

PACKETS = Setting(
    field="queue_packets",
    word="queue",
    of_other_unit=True,
    kind=QUEUE_PACKETS,
    unit="packets",
    rare="queue of {:g} packets",
    counted=True,
    at_sender=True,
    about="",
    page="",
    wire=(
        WireField(
            name="queue_frames",
            value=lambda way: way.queue_packets if counts_packets(way) else None,
            per=1,
            unit="packets",
        ),
    ),
)
TIME = Setting(
    field="queue_ms",
    word="queue",
    of_other_unit=True,
    kind=QUEUE_MS,
    unit="ms",
    rare="queue of {:g} ms",
    at_sender=True,
    about="",
    page="",
)
FIELDS = ("queue_bytes", PACKETS.field, TIME.field)
"""The fields of `Shaping` of which a direction has one at the most, but for the bytes that follow from the others."""


def counts_packets(way: Way) -> bool:
    """Whether the link's own queue counts packets, whatever their size: a `fifo` that is declared so."""
    waits = bool(way.trace) or (way.rate_mbit is not None and not way.polices)
    return waits and way.queue_packets is not None and way.queue_discipline == "fifo"


def declared_bytes(way: Way, rate_mbit: float | None, frame_bytes: int) -> int | None:
    """The declared queue in bytes, in front of that rate and for full frames of so many bytes; None where there is no
    rate, or the size is not declared."""
    if rate_mbit is None:
        return None
    if way.queue_packets is not None:
        return int(way.queue_packets) * frame_bytes
    if way.queue_ms is not None:
        return math.ceil(rate_mbit * 1000 / 8 * float(way.queue_ms))
    return None if way.queue_bytes is None else int(way.queue_bytes)


def default_bytes(rate_mbit: float | None, rtt_ms: float) -> int | None:
    """The queue in front of a rate whose size is not declared: rate x (RTT of the link + 20 ms), at least 64 kB.

    One bandwidth-delay product keeps a link busy under TCP (Villamizar and Song, 1994). The 20 ms stand for the rest of
    the path, and for scheduling, where the link itself adds hardly any delay.
    """
    if rate_mbit is None:
        return None
    return max(_SMALLEST_BYTES, math.ceil(rate_mbit * 1000 / 8 * (rtt_ms + _SPARE_MS)))


def alone(fields: Iterable[str]) -> dict[str, None]:
    """Where one of these fields is a queue's size, all such fields, as None: a size takes the place of any other."""
    return dict.fromkeys(FIELDS) if not set(FIELDS).isdisjoint(fields) else {}


def replacing(update: Mapping[str, V]) -> dict[str, V | None]:
    """The update, with None for the sizes of a queue that it replaces."""
    return {**alone(update), **update}

"""The queues in front of a link's rate and in its delay. Pure."""

from __future__ import annotations

import math

_SPARE_QUEUE_MS = 20.0
_SMALLEST_QUEUE = 64_000
_SMALLEST_FRAME = 64
_UNLIMITED_MBIT = 1000.0
_FEWEST_PACKETS, _MOST_PACKETS = 1000, 1_000_000


def queue_bytes(rate_mbit: float | None, rtt_ms: float, declared: int | None = None) -> int | None:
    """The queue in front of a rate, in bytes: as declared, else rate x (RTT of the link + 20 ms), at least 64 kB.

    One bandwidth-delay product keeps a link busy under TCP (Villamizar and Song, 1994). The 20 ms stand for the rest of
    the path, and for scheduling, where the link itself adds hardly any delay.
    """
    if rate_mbit is None:
        return None
    sized = math.ceil(rate_mbit * 1000 / 8 * (rtt_ms + _SPARE_QUEUE_MS))
    return declared if declared is not None else max(_SMALLEST_QUEUE, sized)


def delay_packets(rate_mbit: float | None, delay_ms: float, jitter_ms: float) -> int:
    """How many packets the delay must hold so that it never drops one itself.

    Twice what arrives within delay + 4 x jitter as the smallest frames, 64 bytes each. A link without a rate
    counts as 1 Gbit/s: in small frames no emulated host sends as much.
    """
    rate = rate_mbit if rate_mbit is not None else _UNLIMITED_MBIT
    held = rate * 1000 / 8 * (delay_ms + 4 * jitter_ms) / _SMALLEST_FRAME
    return min(_MOST_PACKETS, max(_FEWEST_PACKETS, math.ceil(2 * held)))

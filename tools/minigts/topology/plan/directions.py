"""What a link, or several one behind the other, are in each direction: delay, loss, rate, and the room of queues.
Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

from minigts.topology.facts.links.jitter import OWN
from minigts.topology.fields import MOST_MTU
from minigts.topology.frames import Family, tcp_ceiling_mbit
from minigts.topology.link_settings import BY_FIELD, OF_BURSTS, OF_JITTER, Shaping
from minigts.topology.plan.elements import Direction

_SMALLEST_FRAME = 64
_UNLIMITED_MBIT = 1000.0
_FEWEST_PACKETS, _MOST_PACKETS = 1000, 1_000_000


def delay_packets(rate_mbit: float | None, delay_ms: float, jitter_ms: float) -> int:
    """How many packets the delay must hold so that it never drops one itself.

    Twice what arrives within delay + 4 x jitter as the smallest frames, 64 bytes each. A link without a rate
    counts as 1 Gbit/s: in small frames no emulated host sends as much.
    """
    rate = rate_mbit if rate_mbit is not None else _UNLIMITED_MBIT
    held = rate * 1000 / 8 * (delay_ms + 4 * jitter_ms) / _SMALLEST_FRAME
    return min(_MOST_PACKETS, max(_FEWEST_PACKETS, math.ceil(2 * held)))


Ways: TypeAlias = tuple[Direction, Direction]
"""The direction there, and the one back."""


def direction(
    delay_ms: float,
    loss_percent: float,
    rates_mbit: tuple[float | None, float | None],
    mtu: int,
    family: Family = "ipv4",
) -> Direction:
    """The figures of one direction. `rates_mbit` are its own rate, and the opposite direction's; TCP is over
    `family`."""
    ceiling_mbit = tcp_ceiling_mbit(*rates_mbit, mtu, family=family)
    return Direction(
        delay_ms=round(delay_ms, 6),
        rate_mbit=rates_mbit[0],
        loss_percent=round(loss_percent, 9),
        tcp_ceiling_mbit=None if ceiling_mbit is None else round(ceiling_mbit, 6),
    )


def link_figures(to: Shaping, back: Shaping, mtu: int, family: Family = "ipv4") -> dict[str, Any]:
    """The fields of a plan's link that follow from its two directions, with TCP over `family`."""
    there, again = _sent_by(to, back, mtu, family), _sent_by(back, to, mtu, family)
    return {
        "rtt_ms": round(to.delay_ms + back.delay_ms, 6),
        **there.model_dump(exclude={"delay_ms"}),
        "back": None if again == there else again,
    }


def _sent_by(own: Shaping, other: Shaping, mtu: int, family: Family) -> Direction:
    loss_percent = lost_or_corrupt_percent(own.loss_percent, own.corrupt_percent)
    return direction(own.delay_ms, loss_percent, (own.rate_mbit, other.rate_mbit), mtu, family)


def lost_or_corrupt_percent(loss_percent: float, corrupt_percent: float) -> float:
    """The chance in per cent that a packet is lost, or corrupted, so that its receiver drops it."""
    return 100 * (1 - (1 - loss_percent / 100) * (1 - corrupt_percent / 100))


def derive_shaping(declared: Shaping, seed: int) -> Shaping:
    """The shaping with its derived values: packets in the delay, no bursts without losses, no kind of bursts or jitter
    without them, a seed if it needs one."""
    without = (*(() if declared.jitter_ms else OF_JITTER), *(() if declared.in_bursts else OF_BURSTS))
    plain = {field: BY_FIELD[field].default for field in without}
    if declared.jitter_distribution != OWN:
        plain["jitter_table"] = ""
    # As for others four standard deviations, or what the slowest packet of its own table takes.
    jitter_ms = max(declared.jitter_ms, declared.furthest_jitter_ms[1] / 4 if declared.jitter_table else 0.0)
    held = delay_packets(declared.rate_mbit, declared.delay_ms + declared.slot_ms, jitter_ms)
    burst_packets = declared.burst_packets if declared.in_bursts else 0.0
    seed_or_none = seed if declared.by_chance else None
    derived = {"burst_packets": burst_packets, "delay_packets": held, "seed": seed_or_none}
    return declared.model_copy(update={**plain, **derived})


class PathTotals(NamedTuple):
    """The figures of links in a row, there and back.

    A link is added in one step, so that the paths of a large lab need not each be summed from their first link.
    """

    mtu: int = MOST_MTU
    """The lowest MTU."""
    rtt_ms: float = 0.0
    delay_ms: float = 0.0
    back_delay_ms: float = 0.0
    arrives: float = 1.0
    """The chance that a packet arrives."""
    back_arrives: float = 1.0
    rate_mbit: float | None = None
    """The lowest rate; None where no link is limited."""
    back_rate_mbit: float | None = None
    family: Family = "ipv4"

    def then(self, link: Ways, rtt_ms: float, mtu: int) -> PathTotals:
        """The row with one more link at its end, of that round trip and MTU."""
        there, back = link
        return PathTotals(
            min(self.mtu, mtu),
            self.rtt_ms + rtt_ms,
            self.delay_ms + there.delay_ms,
            self.back_delay_ms + back.delay_ms,
            self.arrives * (1 - there.loss_percent / 100),
            self.back_arrives * (1 - back.loss_percent / 100),
            _lower(self.rate_mbit, there.rate_mbit),
            _lower(self.back_rate_mbit, back.rate_mbit),
            self.family,
        )

    @property
    def there(self) -> Direction:
        rates_mbit = self.rate_mbit, self.back_rate_mbit
        return direction(self.delay_ms, 100 * (1 - self.arrives), rates_mbit, self.mtu, self.family)

    @property
    def back(self) -> Direction | None:
        """The direction back; None where it equals `there`."""
        own = self.delay_ms, self.arrives, self.rate_mbit
        if own == (self.back_delay_ms, self.back_arrives, self.back_rate_mbit):
            return None
        rates_mbit = self.back_rate_mbit, self.rate_mbit
        back = direction(self.back_delay_ms, 100 * (1 - self.back_arrives), rates_mbit, self.mtu, self.family)
        return None if back == self.there else back


def _lower(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def turn(ways: Ways) -> Ways:
    """The directions as seen from the other end."""
    there, back = ways
    return back, there

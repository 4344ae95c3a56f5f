"""What a link, or a row of links, is in each direction. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from minigts.topology.frames import tcp_ceiling_mbit
from minigts.topology.plan import Direction

Ways: TypeAlias = tuple[Direction, Direction]
"""There, and back."""


def direction(
    delay_ms: float, loss_percent: float, rates_mbit: tuple[float | None, float | None], mtu: int
) -> Direction:
    """`rates_mbit` are this direction's own, and that of the way back."""
    ceiling_mbit = tcp_ceiling_mbit(*rates_mbit, mtu)
    return Direction(
        delay_ms=round(delay_ms, 6),
        rate_mbit=rates_mbit[0],
        loss_percent=round(loss_percent, 9),
        tcp_ceiling_mbit=None if ceiling_mbit is None else round(ceiling_mbit, 6),
    )


def spoilt_percent(loss_percent: float, corrupt_percent: float) -> float:
    """Chance that a packet is lost, or corrupted, which its receiver takes for the same."""
    return 100 * (1 - (1 - loss_percent / 100) * (1 - corrupt_percent / 100))


def fewest_in_burst(loss_percent: float) -> float:
    """The least mean length of bursts with which so much, less than all, can be lost: between two one arrives."""
    return loss_percent / (100 - loss_percent)


def in_a_row(links: Sequence[Ways], mtu: int) -> Direction:
    """What leads there over links one behind the other, each as it lies on the way; `mtu` is their lowest."""
    delay_ms, arrives = 0.0, 1.0
    rates_mbit: tuple[list[float], list[float]] = ([], [])
    for there, back in links:
        delay_ms += there.delay_ms
        arrives *= 1 - there.loss_percent / 100
        if there.rate_mbit is not None:
            rates_mbit[0].append(there.rate_mbit)
        if back.rate_mbit is not None:
            rates_mbit[1].append(back.rate_mbit)
    own_mbit, other_mbit = (min(rates, default=None) for rates in rates_mbit)
    return direction(delay_ms, 100 * (1 - arrives), (own_mbit, other_mbit), mtu)


def turned(ways: Ways) -> Ways:
    """As it lies for who comes from the other side."""
    there, back = ways
    return back, there

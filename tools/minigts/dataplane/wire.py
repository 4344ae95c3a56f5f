"""A port's declared shaping to the wire that carries what it sends, where the links themselves delay, limit and lose.

A wire is one direction of a link. All that it is asked for is a whole number, and it is set as it is asked for: nothing
is rounded twice, and what is read back is equal or wrong. Which providers have wires, and who sets them, is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from minigts.topology.parts import End, Shaping

LOSS_OF_ALL = 2**32
_NS_A_S = 1_000_000_000
_NS_A_MS = 1_000_000
_BITS_A_MBIT = 1_000_000


@dataclass(frozen=True)
class Wire:
    """One direction of a link, from the port that sends into it. A frame waits for the rate; then it is lost, or
    delayed on its own: with jitter or reordering, frames may overtake each other.
    """

    rate_bps: int | None
    """Bits a second, Ethernet headers counted; None: not limited."""
    queue_bytes: int | None
    """In front of the rate; None exactly when `rate_bps` is None."""
    delay_ns: int
    jitter_ns: int
    """How far the delay varies up and down, evenly spread, anew for each frame."""
    loss: int
    """Share lost, in 1/2^32: from 0 to 2^32."""
    seed: int | None
    """Of the random numbers; None when chance decides nothing."""
    burst_begins: int = 0
    """Of losses in bursts the chance that one begins with a frame, in 1/2^32 as all shares."""
    burst_ends: int = 0
    """That one ends with a frame; 0 exactly when each frame is lost on its own."""
    reorder: int = 0
    """Share that takes no delay."""
    duplicate: int = 0
    """Share that is sent twice; each of the two is then lost, delayed and corrupted on its own."""
    corrupt: int = 0
    """Share in which one bit behind the Ethernet header is turned over."""
    slot_ns: int = 0
    """Frames that come within so long of the first arrive together at its end; 0: each when it comes."""

    @property
    def rate_mbit(self) -> float | None:
        return None if self.rate_bps is None else self.rate_bps / _BITS_A_MBIT

    @property
    def delay_ms(self) -> float:
        return self.delay_ns / _NS_A_MS

    @property
    def jitter_ms(self) -> float:
        return self.jitter_ns / _NS_A_MS

    @property
    def loss_percent(self) -> float:
        return _percent(self.loss)

    @property
    def burst_packets(self) -> float:
        """The mean length of bursts; 0 when there are none."""
        return LOSS_OF_ALL / self.burst_ends if self.burst_ends else 0.0

    @property
    def reorder_percent(self) -> float:
        return _percent(self.reorder)

    @property
    def duplicate_percent(self) -> float:
        return _percent(self.duplicate)

    @property
    def corrupt_percent(self) -> float:
        return _percent(self.corrupt)

    @property
    def slot_ms(self) -> float:
        return self.slot_ns / _NS_A_MS

    def crossing_ns(self, frame_bytes: int) -> int:
        """How long a frame takes from end to end that meets no other: its own time at the rate, then the delay."""
        own = 0 if self.rate_bps is None else -(-frame_bytes * 8 * _NS_A_S // self.rate_bps)
        return own + self.delay_ns


def _percent(share: int) -> float:
    return 100 * share / LOSS_OF_ALL


def _share(percent: float) -> int:
    return round(percent * LOSS_OF_ALL / 100)


@dataclass(frozen=True)
class WireState:
    """What is known of a wire when it is read back. It counts from when the lab came up."""

    wire: Wire
    frames: int
    """Sent into it."""
    bytes: int
    """Of these frames, Ethernet headers counted."""
    dropped: int
    """Frames that found the queue full."""
    lost: int
    """Frames that were lost by chance, or since the link was cut."""
    queued: int = 0
    """Bytes that wait in front of its rate now."""
    overrun: int = 0
    """Frames for which a host at one of its ends, or the clock, had no room."""


def of(direction: Shaping) -> Wire:
    """The wire for one direction of a link: for a port, its `outgoing`."""
    limited = direction.rate_mbit is not None
    begins, ends = direction.bursts or (0.0, 0.0)
    return Wire(
        rate_bps=round((direction.rate_mbit or 0) * _BITS_A_MBIT) if limited else None,
        queue_bytes=direction.queue_bytes if limited else None,
        delay_ns=round(direction.delay_ms * _NS_A_MS),
        jitter_ns=round(direction.jitter_ms * _NS_A_MS),
        loss=_share(direction.loss_percent),
        seed=direction.seed,
        burst_begins=_share(100 * begins),
        burst_ends=_share(100 * ends),
        reorder=_share(direction.reorder_percent),
        duplicate=_share(direction.duplicate_percent),
        corrupt=_share(direction.corrupt_percent),
        slot_ns=round(direction.slot_ms * _NS_A_MS),
    )


def bare(port: End) -> End:
    """The port as its host sees it when the wire does the rest: nothing is set there, and nothing may be."""
    return port.model_copy(update={"outgoing": Shaping(), "incoming": Shaping()})


def differences(port: End, shown: Wire) -> list[str]:
    """How the wire that `port` sends into differs from what it should be, a sentence each; empty when equal."""
    wanted = of(port.outgoing)
    settings: tuple[tuple[str, int | None, int | None, float, str], ...] = (
        ("rate", shown.rate_bps, wanted.rate_bps, _BITS_A_MBIT, "Mbit/s"),
        ("queue", shown.queue_bytes, wanted.queue_bytes, 1, "bytes"),
        ("delay", shown.delay_ns, wanted.delay_ns, _NS_A_MS, "ms"),
        ("jitter", shown.jitter_ns, wanted.jitter_ns, _NS_A_MS, "ms"),
        ("loss", shown.loss, wanted.loss, LOSS_OF_ALL / 100, "%"),
        ("seed", shown.seed, wanted.seed, 1, ""),
        ("beginning of bursts", shown.burst_begins, wanted.burst_begins, LOSS_OF_ALL / 100, "%"),
        ("end of bursts", shown.burst_ends, wanted.burst_ends, LOSS_OF_ALL / 100, "%"),
        ("reorder", shown.reorder, wanted.reorder, LOSS_OF_ALL / 100, "%"),
        ("duplicate", shown.duplicate, wanted.duplicate, LOSS_OF_ALL / 100, "%"),
        ("corrupt", shown.corrupt, wanted.corrupt, LOSS_OF_ALL / 100, "%"),
        ("slot", shown.slot_ns, wanted.slot_ns, _NS_A_MS, "ms"),
    )
    return [
        f"{port.name}: {name} is {_in_words(value, scale, unit)}, should be {_in_words(should, scale, unit)}"
        for name, value, should, scale, unit in settings
        if value != should
    ]


def _in_words(value: int | None, scale: float, unit: str) -> str:
    """With so many digits that no two values look alike."""
    return "none" if value is None else f"{value / scale:.15g} {unit}".strip()


def undeclared_losses(port: End, state: WireState, *, modelled: bool = False) -> int:
    """How many of the frames that `port` sent got lost where the plan declares neither a loss nor a queue for them,
    nor, if it is `modelled`, a processor for which only so many frames wait.
    """
    lost = 0 if port.outgoing.loss_percent else state.lost
    dropped = 0 if port.outgoing.rate_mbit is not None else state.dropped
    return lost + dropped + (0 if modelled else state.overrun)

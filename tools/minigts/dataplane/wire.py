"""A port's declared shaping to the wire that carries what it sends, where the links themselves delay, limit and lose.

A wire is one direction of a link. All that it is asked for is a whole number, and it is set as it is asked for: nothing
is rounded twice, and what is read back is equal or wrong. Which providers have wires, and who sets them, is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from minigts.topology.link_settings import LINK_SETTINGS, Shaping
from minigts.topology.parts import End
from minigts.topology.setting import Setting

_NS_A_S = 1_000_000_000


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

    def amount_of(self, setting: Setting) -> Any:
        """What it does of that, in the plan's unit; None: not limited, or no wire does any of it."""
        return setting.from_wire(vars(self))

    def crossing_ns(self, frame_bytes: int) -> int:
        """How long a frame takes from end to end that meets no other: its own time at the rate, then the delay."""
        own = 0 if self.rate_bps is None else -(-frame_bytes * 8 * _NS_A_S // self.rate_bps)
        return own + self.delay_ns


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


_NUMBERS = {number.name: (setting, number) for setting in LINK_SETTINGS for number in setting.wire}
"""By their names the numbers of a wire that follow from settings: all but its seed."""


def of(direction: Shaping) -> Wire:
    """The wire for one direction of a link: for a port, its `outgoing`."""
    counts = {number.name: number.value(direction) for _, number in _NUMBERS.values()}
    return Wire(**counts, seed=direction.seed)  # type: ignore[arg-type]


def bare(port: End) -> End:
    """The port as its host sees it when the wire does the rest: nothing is set there, and nothing may be."""
    return port.model_copy(update={"outgoing": Shaping(), "incoming": Shaping()})


def differences(port: End, shown: Wire) -> list[str]:
    """How the wire that `port` sends into differs from what it should be, a sentence each; empty when equal."""
    wanted = of(port.outgoing)
    pairs = ((each.name, getattr(shown, each.name), getattr(wanted, each.name)) for each in fields(Wire))
    return [f"{port.name}: {_difference(name, is_, should)}" for name, is_, should in pairs if is_ != should]


def _difference(name: str, is_: int | None, should: int | None) -> str:
    """With so many digits that no two values look alike."""
    word, per, unit = name, 1.0, ""
    if name in _NUMBERS:
        setting, number = _NUMBERS[name]
        word, per, unit = number.label or setting.word, number.per, number.unit
    there, wanted = ("none" if each is None else f"{each / per:.15g} {unit}".strip() for each in (is_, should))
    return f"{word} is {there}, should be {wanted}"


def undeclared_losses(port: End, state: WireState, *, modelled: bool = False) -> int:
    """How many of the frames that `port` sent got lost where the plan declares neither a loss nor a queue for them,
    nor, if it is `modelled`, a processor for which only so many frames wait.
    """
    lost = 0 if port.outgoing.loss_percent else state.lost
    dropped = 0 if port.outgoing.rate_mbit is not None else state.dropped
    return lost + dropped + (0 if modelled else state.overrun)

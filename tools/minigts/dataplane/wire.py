"""Turn a port's declared shaping into the wire that carries its frames, where links themselves delay, limit and lose.

A wire is one direction of a link. All its settings are whole numbers, and they are set exactly: nothing is rounded
twice, and a value that is read back is equal or wrong. Providers that have wires set them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from minigts.topology import disciplines, opportunities
from minigts.topology.link_setting import Setting
from minigts.topology.link_settings import LINK_SETTINGS, Shaping
from minigts.topology.plan.elements import Port

_NS_A_S = 1_000_000_000
_OF_SOME = ("trace", "trace_runs", "queue_frames")


@dataclass(frozen=True)
class Wire:
    """One direction of a link, from the port that sends into it. A frame waits for the rate; then it is lost, or
    delayed on its own. Frames overtake each other by reordering alone, unless `jitter_overtakes` says that they do by
    jitter, too.
    """

    rate_bps: int | None
    """Bits a second, Ethernet headers counted; None: not limited."""
    queue_bytes: int | None
    """The queue in front of the rate or the trace; None when there is neither, and where it counts frames."""
    delay_ns: int
    jitter_ns: int
    """How far the delay varies from frame to frame: of a uniform distribution up and down at the most, of others the
    standard deviation."""
    loss: int
    """Share lost, in 1/2^32: from 0 to 2^32."""
    seed: int | None
    """The seed of the random numbers; None when the wire uses none."""
    burst_begins: int = 0
    """The chance that a burst of losses begins with a frame, in 1/2^32 as all shares."""
    burst_ends: int = 0
    """The chance that a burst ends with a frame; 0 exactly when each frame is lost on its own."""
    reorder: int = 0
    """Share that takes no delay."""
    duplicate: int = 0
    """Share that is sent twice; each of the two is then lost, delayed and corrupted on its own."""
    corrupt: int = 0
    """Share in which one bit after the Ethernet header is flipped."""
    slot_ns: int = 0
    """Frames that come within this time of a first one arrive together at its end; with 0 each arrives on its own."""
    jitter_distribution: int = 0
    """The number of the distribution in `facts.links.jitter.DISTRIBUTIONS`."""
    jitter_correlation: int = 0
    """How much a frame's delay is like that of the one before, in 1/2^32."""
    jitter_overtakes: int = 0
    """1 where a frame whose jitter makes it faster arrives before earlier ones; 0 where it waits for them."""
    burst_spares: int = 0
    """Share of a burst's frames that is not lost."""
    between_bursts: int = 0
    """Share of the other frames that is lost, where there are bursts."""
    credit_bytes: int = 0
    """Bytes that an idle wire saves up, and that leave at once beyond the rate."""
    excess_drops: int = 0
    """1 where frames beyond rate and credit are dropped; 0 where they wait."""
    hole_bytes: int | None = None
    """The largest IP packet that arrives; None: any."""
    peak_bps: int | None = None
    """The rate at which credit leaves; None: at once."""
    jitter_table: Sequence[int] = ()
    """The quantiles of the distribution `table` (`topology.own_delays`); none for others."""

    queue_frames: int | None = None
    """How many frames may wait, the one that is leaving included; None: any number."""
    trace: str | None = None
    """The name of the trace that is played in place of the rate; None: none."""
    trace_runs: str | None = field(default=None, compare=False, repr=False)
    """The trace, as a plan has it. A wire that is read back has none."""
    no_carrier: int = 0
    """1 where the card that sends into the wire has no carrier; 0 where it has one."""

    def __post_init__(self) -> None:
        if not isinstance(self.jitter_table, tuple):  # as JSON has it
            object.__setattr__(self, "jitter_table", tuple(self.jitter_table))

    @property
    def numbers(self) -> dict[str, Any]:
        """All of them by name, as the clock takes them. What only some wires have is left out where it is None."""
        return {name: each for name, each in asdict(self).items() if each is not None or name not in _OF_SOME}

    def amount_of(self, setting: Setting) -> Any:
        """The value of a setting, in the plan's unit; None where it is not limited, or no wire has the setting."""
        return setting.wire_value(vars(self))

    def crossing_ns(self, frame_bytes: int) -> int:
        """The time in ns of a frame from end to end that does not wait for others: its time at the rate, as far as no
        credit covers it, then the delay."""
        if self.rate_bps is None:
            return self.delay_ns
        own, credit = -(-frame_bytes * 8 * _NS_A_S // self.rate_bps), self.credit_bytes * 8 * _NS_A_S // self.rate_bps
        at_peak = 0 if self.peak_bps is None else -(-frame_bytes * 8 * _NS_A_S // self.peak_bps)
        return max(at_peak, own - credit) + self.delay_ns


@dataclass(frozen=True)
class WireState:
    """The state of a wire that is read back. Counters begin when the lab comes up."""

    wire: Wire
    frames: int
    """Frames sent into the wire."""
    bytes: int
    """Bytes of these frames, Ethernet headers counted."""
    dropped: int
    """Frames that found the queue full."""
    lost: int
    """Frames that were lost by chance, by their size, or since the link was cut."""
    queued: int = 0
    """Bytes that wait in front of its rate now."""
    overrun: int = 0
    """Frames for which a host at one of its ends, or the clock, had no room."""


_NUMBERS = {number.name: (setting, number) for setting in LINK_SETTINGS for number in setting.wire}
"""The numbers of a wire that follow from settings, by name: all but its seed."""


def wire_for(direction: Shaping, *, carrier: bool = True) -> Wire:
    """The wire for one direction of a link: for a port, its `outgoing`, and whether it has a carrier."""
    counts = {number.name: number.value(direction) for _, number in _NUMBERS.values()}
    if direction.trace:
        counts |= {"rate_bps": None, "credit_bytes": 0, "peak_bps": None, "excess_drops": 0}
        counts |= {"trace": opportunities.name_of(direction.trace), "trace_runs": direction.trace}
    return Wire(**counts, seed=direction.seed, no_carrier=0 if carrier else 1)


def unshaped_port(port: Port) -> Port:
    """The port as its host must have it when the wire does the shaping: without any, but for a queue discipline other
    than `fifo`. That is on the host, with the rate in front of which it holds the queue."""
    way = port.outgoing
    queue = {each: getattr(way, each) for each in Shaping.model_fields if each.startswith(("queue_", "rate_"))}
    outgoing = Shaping.model_construct(**queue) if disciplines.is_in_host(way) else Shaping()
    return port.model_copy(update={"outgoing": outgoing, "incoming": Shaping()})


def differences(port: Port, shown: Wire, *, carrier: bool = True) -> list[str]:
    """How the wire that `port` sends into differs from what it should be, a sentence each; empty when equal."""
    wanted = wire_for(port.outgoing, carrier=carrier)
    pairs = (
        (each.name, getattr(shown, each.name), getattr(wanted, each.name)) for each in fields(Wire) if each.compare
    )
    return [f"{port.name}: {_difference(name, is_, should)}" for name, is_, should in pairs if is_ != should]


def _difference(name: str, is_: Any, should: Any) -> str:
    """The difference in words, with so many digits that no two values look alike."""
    word, per, unit = name, 1.0, ""
    if name in _NUMBERS:
        setting, number = _NUMBERS[name]
        if setting.in_short is not None:
            there, wanted = (setting.in_short(" ".join(map(str, each))) for each in (is_, should))
            return f"{setting.word} is {there}, should be {wanted}"
        word, per, unit = number.label or setting.word, number.per, number.unit
    if name == "no_carrier":
        return f"the carrier is {'lost' if is_ else 'there'}, should be {'lost' if should else 'there'}"
    if name == "trace":
        return f"the trace is {is_ or 'none'}, should be {should or 'none'}"
    there, wanted = ("none" if each is None else f"{each / per:.15g} {unit}".strip() for each in (is_, should))
    return f"{word} is {there}, should be {wanted}"


def undeclared_losses(port: Port, state: WireState, *, modelled: bool) -> int:
    """The number of frames from `port` that got lost although the plan declares neither a loss nor a queue for them,
    nor, if it is `modelled`, a processor, for which only a limited number of frames waits.
    """
    lost = 0 if port.outgoing.loss_percent or port.outgoing.blackhole_bytes is not None else state.lost
    dropped = 0 if port.outgoing.rate_mbit is not None else state.dropped
    return lost + dropped + (0 if modelled else state.overrun)

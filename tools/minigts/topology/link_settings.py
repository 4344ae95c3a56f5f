"""What a link does to packets: all settings in one direction, each from its own file (`facts/links`), and what
follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from minigts.language.problems import list_names, quote
from minigts.topology import disciplines, opportunities, own_delays
from minigts.topology.facts.links import (
    blackhole,
    burst,
    corrupt,
    delay,
    duplicate,
    jitter,
    loss,
    queue,
    rate,
    reorder,
    slot,
)
from minigts.topology.facts.links.burst import ALL_PERCENT
from minigts.topology.fields import (
    BurstPackets,
    CreditBytes,
    Distribution,
    Excess,
    HoleBytes,
    JitterOrder,
    OneWayMs,
    Packets,
    Percent,
    QueueBytes,
    QueueMs,
    QueuePackets,
    RateMbit,
    Seed,
)
from minigts.topology.link_setting import (
    DECLARED,
    Amount,
    Setting,
)
from minigts.topology.time import Time

TABLES = "run/minigts"
"""The directory of a host, below its root, with tables of delays for netem."""
_UNLESS_ZERO = Field(exclude_if=lambda amount: not amount)
_UNLESS_NONE = Field(exclude_if=lambda amount: amount is None)


class Shaping(BaseModel):
    """One direction of one link, as declared. None means that nothing is limited."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delay_ms: Annotated[OneWayMs, delay.DELAY] = 0.0
    jitter_ms: Annotated[OneWayMs, jitter.RANGE] = 0.0
    """Of `uniform` how far at the most, of other distributions the standard deviation: as netem and wires take it."""
    jitter_correlation_percent: Annotated[Percent, _UNLESS_ZERO, jitter.CORRELATION] = 0.0
    jitter_distribution: Annotated[
        Distribution, Field(exclude_if=lambda word: word == "uniform"), jitter.DISTRIBUTION
    ] = "uniform"
    jitter_table: Annotated[own_delays.Quantiles, Field(exclude_if=lambda quantiles: not quantiles), jitter.TABLE] = ""
    """The quantiles of the distribution `table`, as `own_delays` has them; empty for every other."""
    jitter_order: Annotated[JitterOrder, Field(exclude_if=lambda word: word == "kept"), jitter.ORDER] = "kept"
    loss_percent: Annotated[Percent, loss.LOSS] = 0.0
    rate_mbit: Annotated[RateMbit | None, rate.MEAN] = None
    rate_burst_bytes: Annotated[CreditBytes, _UNLESS_ZERO, rate.BURST] = 0
    rate_peak_mbit: Annotated[RateMbit | None, _UNLESS_NONE, rate.PEAK] = None
    rate_excess: Annotated[Excess, Field(exclude_if=lambda word: word == "queue"), rate.EXCESS] = "queue"
    queue_bytes: Annotated[QueueBytes | None, queue.SIZE] = None
    """In a plan it is None exactly when rate_mbit is None; it follows from the two below, where one is given."""
    queue_packets: Annotated[QueuePackets | None, _UNLESS_NONE, queue.PACKETS] = None
    queue_ms: Annotated[QueueMs | None, _UNLESS_NONE, queue.TIME] = None
    queue_discipline: Annotated[
        Literal["fifo", "bfifo", "pfifo", "codel", "fq_codel", "cake", "red", "pie", "fq"],
        Field(exclude_if=lambda name: name == disciplines.FIFO),
        queue.DISCIPLINE,
    ] = "fifo"
    queue_ecn: Annotated[Literal["true", "false"] | None, _UNLESS_NONE, queue.ECN] = None
    queue_target_ms: Annotated[OneWayMs | None, _UNLESS_NONE, queue.TARGET] = None
    queue_interval_ms: Annotated[OneWayMs | None, _UNLESS_NONE, queue.INTERVAL] = None
    queue_mark_ms: Annotated[OneWayMs | None, _UNLESS_NONE, queue.MARK] = None
    queue_min_bytes: Annotated[QueueBytes | None, _UNLESS_NONE, queue.MIN] = None
    queue_max_bytes: Annotated[QueueBytes | None, _UNLESS_NONE, queue.MAX] = None
    delay_packets: Packets = 1000
    """The most packets that the delay holds, so many that the delay itself never drops one."""
    seed: Seed | None = None
    """The seed of the random numbers; None when the direction uses none."""
    trace: Annotated[opportunities.Runs, Field(exclude_if=lambda runs: not runs)] = ""
    """The delivery opportunities that a schedule plays in place of the rate; empty: the rate holds."""
    burst_packets: Annotated[BurstPackets, _UNLESS_ZERO, burst.LENGTH] = 0.0
    """The mean number of packets in a burst. With 0 each is lost on its own. 0 is not stored, here and below."""
    burst_loss_percent: Annotated[Percent, Field(exclude_if=lambda share: share == ALL_PERCENT), burst.LOSS] = 100.0
    burst_between_percent: Annotated[Percent, _UNLESS_ZERO, burst.BETWEEN] = 0.0
    reorder_percent: Annotated[Percent, _UNLESS_ZERO, reorder.REORDER] = 0.0
    duplicate_percent: Annotated[Percent, _UNLESS_ZERO, duplicate.DUPLICATE] = 0.0
    corrupt_percent: Annotated[Percent, _UNLESS_ZERO, corrupt.CORRUPT] = 0.0
    slot_ms: Annotated[OneWayMs, _UNLESS_ZERO, slot.SLOT] = 0.0

    blackhole_bytes: Annotated[HoleBytes | None, Field(exclude_if=lambda size: size is None), blackhole.BLACKHOLE] = (
        None
    )
    """The largest IP packet that arrives; None: any."""

    @property
    def rate_bps(self) -> int | None:
        return None if self.rate_mbit is None else round(self.rate_mbit * rate.BITS_A_MBIT)

    @property
    def peak_bps(self) -> int | None:
        return None if self.rate_peak_mbit is None else round(self.rate_peak_mbit * rate.BITS_A_MBIT)

    @property
    def bursts(self) -> tuple[float, float] | None:
        """The chances that a burst of losses begins, and that it ends, with a packet (Gilbert, 1960; Elliott, 1963).
        None means that each packet is lost on its own, as where no bursts give the loss.
        """
        inside = self.share_in_bursts
        if not self.in_bursts or not 0 < inside < 1:
            return None
        return inside / (self.burst_packets * (1 - inside)), 1 / self.burst_packets

    @property
    def share_in_bursts(self) -> float:
        """The share of packets in bursts, from 0 to 1, that gives the declared loss of all packets. Outside of these
        bounds no bursts give it."""
        between, inside = self.burst_between_percent, self.burst_loss_percent
        return (self.loss_percent - between) / (inside - between) if inside != between else math.inf

    @property
    def in_bursts(self) -> bool:
        return self.burst_packets > 0 and 0 < self.loss_percent < 100

    @property
    def by_chance(self) -> bool:
        """Whether the direction uses random numbers, and so needs a seed."""
        return bool(self.jitter_ms or self.spoils)

    @property
    def median_jitter_ms(self) -> float:
        """How far the median of many delays may be from `delay_ms` by jitter."""
        part = jitter.median_part(self.jitter_distribution, self.jitter_correlation_percent, self.jitter_table)
        return self.jitter_ms * part

    @property
    def furthest_jitter_ms(self) -> tuple[float, float]:
        """How far below and above `delay_ms` the delays of its own table are at the most; negative and positive."""
        least, most = (own_delays.quantile(self.jitter_table, share) for share in (0, 1))
        return self.jitter_ms * least, self.jitter_ms * most

    @property
    def distribution_for_tc(self) -> str:
        """The word that tells `tc` the distribution. A table of the link's own is where that word leads from the
        directory of its library, wherever that is."""
        if self.jitter_distribution != jitter.OWN:
            return self.jitter_distribution
        return f"{'../' * 8}{TABLES}/{own_delays.netem_file(self.jitter_table)[0]}"

    @property
    def spoils(self) -> bool:
        """Whether some packets do not come once, in order and whole."""
        return any((self.loss_percent, self.reorder_percent, self.duplicate_percent, self.corrupt_percent))

    @property
    def polices(self) -> bool:
        """Whether packets beyond rate and credit are dropped."""
        return self.rate_mbit is not None and self.rate_excess == "drop"

    @property
    def why_not_filled(self) -> str | None:
        """Why TCP over the link does not show its rate, beside loss and order; None where it does."""
        if self.blackhole_bytes is not None:
            return f"packets of more than {self.blackhole_bytes} bytes are lost"
        if self.polices:
            return "TCP gives way to what a policer drops"
        return "TCP gets more until the credit is used up" if self.rate_burst_bytes else None

    @property
    def in_order(self) -> bool:
        """Whether packets arrive once, one by one and, jitter aside, in order, unless they are lost. Only then does the
        link have one round trip, and TCP its ceiling."""
        return not (self.reorder_percent or self.duplicate_percent or self.slot_ms)


def _found() -> Iterator[Setting]:
    for field, info in Shaping.model_fields.items():
        for each in info.metadata:
            if isinstance(each, Setting):
                yield replace(each, field=field, default=info.default)


BY_FIELD: Mapping[str, Setting] = {each.field: each for each in _found()}
AT_RECEIVER = tuple(each for each in BY_FIELD.values() if not each.at_sender)
AT_SENDER = tuple(each for each in BY_FIELD.values() if each.at_sender)
LINK_SETTINGS = AT_RECEIVER + AT_SENDER
"""All settings, in the order of a link's keys."""


def _beside(word: str) -> tuple[str, ...]:
    """The fields of the settings that stand beside this one in its mapping."""
    return tuple(each.field for each in LINK_SETTINGS if each.head == word and "." in each.word)


OF_BURSTS, OF_RATE, OF_JITTER = map(_beside, ("burst", "rate", "jitter"))
"""The fields that tell how bursts, a rate or a jitter are, and mean nothing without them."""
SETTABLE: Mapping[str, Setting] = {
    each.word: each for each in LINK_SETTINGS if each.settable and not each.of_other_unit
}
"""The settings that can change while a lab is up, by word."""


def other_than_default(way: Shaping) -> Iterator[Setting]:
    """The settings of this direction of a link that differ from their defaults."""
    return (each for each in LINK_SETTINGS if getattr(way, each.field) != each.default)


def untimely(ways: Iterable[Shaping], time: Time) -> Iterator[str]:
    """Yield a message for each setting of these directions that does not apply to a lab of `time`."""
    other = [each for each in LINK_SETTINGS if each.only not in (None, time)]
    for way in ways:
        for each in other:
            if getattr(way, each.field) != each.default:
                yield f"{each.word} exists only in {each.only} time, and this lab runs in {time} time"


def plan_words(field: str, value: Amount | None) -> str:
    """A value that is set of a field, with the setting's word: `rate 10 mbit`, `delay declared`."""
    if field == "trace":
        return f"trace of {opportunities.short_text(str(value))}" if value else "no trace"
    setting = BY_FIELD[field]
    return f"{setting.word} {setting.plan_words(value)}"


def user_words(field: str, value: Amount) -> str:
    """As `plan_words`, in the unit that users know: `rate 10 Mbit/s`."""
    if field == "trace":
        return plan_words(field, value)
    return f"{BY_FIELD[field].word} {BY_FIELD[field].value_words(value)}"


def amount(word: str, written: object) -> tuple[str, Amount | None]:
    """The field that `word` names, and its new value; None means the declared value. Raises ValueError."""
    if word not in SETTABLE:
        raise ValueError(f"{quote(word)} cannot be set: write {list_names([*SETTABLE])}")
    setting = SETTABLE[word]
    return (setting.field, None) if written == DECLARED else setting.read(written)


def _optional() -> dict[str, Any]:
    """The fields of `Shaping` that can be set under traffic and a schedule's trace, each in its own bounds, or None."""
    fields = {each.field: Shaping.model_fields[each.field] for each in BY_FIELD.values() if each.settable}
    bounded: dict[str, Any] = {
        name: getitem(Annotated, (info.annotation, *info.metadata)) for name, info in fields.items()
    }
    bounded["trace"] = opportunities.Runs
    return {name: (each | None, None) for name, each in bounded.items()}


if TYPE_CHECKING:

    class Amounts(BaseModel):
        """Values that replace declared settings of a direction, by field. None means the declared value."""

        model_config = ConfigDict(frozen=True)  # `Any` may be said here, and no other field when it runs

        def __getattr__(self, field: str) -> Any: ...

else:
    Amounts = create_model("Amounts", __config__=ConfigDict(frozen=True, extra="forbid"), **_optional())

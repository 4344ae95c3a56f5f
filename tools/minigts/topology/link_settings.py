"""What a link does to packets, setting by setting: the one list of them. The reference page's sections come of it,
too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from minigts.language.problems import listed, shown
from minigts.language.quantities import BURST_PACKETS, LOSS_PERCENT, RATE_MBIT, SIZE_BYTES, TIME_MS, Words
from minigts.topology import disciplines
from minigts.topology.fields import BurstPackets, OneWayMs, Packets, Percent, QueueBytes, RateMbit, Seed
from minigts.topology.setting import (
    DECLARED,
    LOSS_OF_ALL,
    Amount,
    Setting,
    Tc,
    WireField,
    burst_field,
    loss,
    microseconds,
    of_share,
    of_time,
    shown_burst,
    shown_limit,
    shown_loss,
    wire_share,
)
from minigts.topology.time import Time

_BITS_A_MBIT = 1_000_000
_UNLESS_ZERO = Field(exclude_if=lambda amount: not amount)
_UNLESS_NONE = Field(exclude_if=lambda amount: amount is None)


class Shaping(BaseModel):
    """One direction of one link, as declared. None means that nothing is limited."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delay_ms: Annotated[
        OneWayMs,
        Setting(
            word="delay",
            about="One-way delay, for both directions or {to: 10ms, from: 30ms}. Not together with rtt. Default: 0ms.",
            page="""\
optional · time, or one for each [direction](#two-directions) · default: `0ms` · `delay: 10ms`

One-way delay: `delay: 10ms` is `rtt: 20ms`, and `delay: {to: 10ms, from: 30ms}` has a round trip of 40 ms. Not
together with `rtt`.""",
            **of_time(
                "delay_ns",
                "delay_ms",
                lambda ms: ("delay", microseconds(ms)),
                lambda netem: netem.get("delay", {}).get("delay", 0.0),
            ),
        ),
    ] = 0.0
    jitter_ms: Annotated[
        OneWayMs,
        Setting(
            word="jitter",
            about="How far the one-way delay varies up and down, evenly spread; packets may overtake. For both "
            "directions or {to: 1ms, from: 2ms}. Default: 0ms.",
            page="""\
optional · time, at most the one-way delay, or one for each direction · default: `0ms` · `jitter: 1ms`

The one-way delay varies evenly between delay − jitter and delay + jitter, anew for each packet; packets may overtake
each other.""",
            **of_time(
                "jitter_ns",
                "jitter_ms",
                lambda ms: (microseconds(ms),) if ms else (),  # the delay's second figure
                lambda netem: netem.get("delay", {}).get("jitter", 0.0),
            ),
        ),
    ] = 0.0
    loss_percent: Annotated[
        Percent,
        Setting(
            word="loss",
            kind=LOSS_PERCENT,
            unit="%",
            about="Share of packets lost at random, in each direction or {to: 0%, from: 1%}. Default: 0%.",
            page="""\
optional · loss, or one for each direction · default: `0%` · `loss: 0.1%`

Share of packets lost at random, in each direction: each on its own, or in [bursts](#linksburst).""",
            tc=Tc(
                words=loss,
                read=shown_loss,
                # Of bursts tc shows two chances with six digits, from which the loss is worked out.
                slack=lambda way: 1e-6 if way.bursts is None else 1e-4 * way.loss_percent,
            ),
            wire=(
                WireField(name="loss", value=lambda way: wire_share(way.loss_percent), per=LOSS_OF_ALL / 100, unit="%"),
            ),
        ),
    ] = 0.0
    rate_mbit: Annotated[
        RateMbit | None,
        Setting(
            word="rate",
            kind=RATE_MBIT,
            unit="Mbit/s",
            at_sender=True,
            about="Highest rate in each direction or {to: 50mbit, from: 5mbit}, Ethernet headers counted. Default: "
            "unlimited.",
            page="""\
optional · rate, or one for each direction · default: unlimited · `rate: 50mbit`

Highest rate in each direction. Ethernet headers count (14 bytes a frame), so TCP gets at most 1448/1514 of it at MTU
1500: 47.8 of 50 Mbit/s. The plan predicts that ceiling where the way back can carry an acknowledgement for every
segment, 66 bytes for 1514, or 4.4 % of the rate. Below that acknowledgements may be the limit, and the plan predicts
none. Between two hosts whose [TCP buffers](#hostssysctls) may carry less than the links over the round trip, the plan
predicts a range: the least and the most that their windows carry. `minigts plan` says in the column `limit` which of
these it is.""",
            tc=Tc(
                words=lambda way: () if way.rate_bps is None else ("rate", f"{way.rate_bps}bit"),
                read=lambda tbf: tbf["rate"] * 8 / _BITS_A_MBIT,
                slack=lambda way: 0.01 * (way.rate_mbit or 0),
            ),
            wire=(WireField(name="rate_bps", value=lambda way: way.rate_bps, per=_BITS_A_MBIT, unit="Mbit/s"),),
        ),
    ] = None
    queue_bytes: Annotated[
        QueueBytes | None,
        Setting(
            word="queue",
            kind=SIZE_BYTES,
            unit="bytes",
            inside="size",
            counted=True,
            at_sender=True,
            about="Queue in front of the rate, for each direction or {to: 100kB, from: 20kB}. Default: rate x (RTT of "
            "the link + 20ms), at least 64kB.",
            page="""\
optional, only with a rate · size, at least one frame, or one for each direction · default: rate × (RTT of the link +
20 ms), at least 64 kB · `queue: 100kB`

Size of the queue in front of the rate, in bytes. The default is one bandwidth-delay product of the link and 20 ms for
the rest of the path.""",
            tc=Tc(
                words=lambda way: () if way.queue_bytes is None else ("limit", str(way.queue_bytes)),
                read=shown_limit,
                slack=lambda way: 0.01 * (way.queue_bytes or 0) + (way.rate_mbit or 0) / 8,  # what a microsecond holds
            ),
            wire=(
                WireField(
                    name="queue_bytes",
                    value=lambda way: None if way.rate_mbit is None else way.queue_bytes,
                    per=1,
                    unit="bytes",
                ),
            ),
        ),
    ] = None
    """In a plan it is None exactly when rate_mbit is None."""
    queue_discipline: Annotated[
        Literal["fifo", "bfifo", "codel", "fq_codel", "cake", "red", "pie", "fq"],
        Field(exclude_if=lambda name: name == disciplines.FIFO),
        Setting(
            word="queue.discipline",
            kind=Words("a queue discipline", disciplines.NAMES),
            rare="queue by {}",
            at_sender=True,
            about="Queue discipline: who of those that wait is next, who is dropped or marked. Default: fifo, the "
            "link's own queue; all others are Linux's own, in the sending host.",
            features={"pie": "the queue discipline pie"},
            page="""\
optional, only with a rate · `fifo`, `bfifo`, `codel`, `fq_codel`, `cake`, `red`, `pie` or `fq`, or one for each
direction · default: `fifo` · `discipline: fq_codel`

Who of the packets that wait is sent next, and which are dropped or marked. `queue: 100kB` is the same as
`queue: {size: 100kB}`. `fifo` is the link's own queue: the first that comes is the first that leaves, and what finds
no room is lost. All others are Linux's own, in the host or switch that sends, below a `tbf` with the link's rate:
`tc -s qdisc` shows them there, with what they have dropped and marked. [More about
them](#queue-disciplines).""",
        ),
    ] = "fifo"
    queue_ecn: Annotated[
        Literal["true", "false"] | None,
        _UNLESS_NONE,
        Setting(
            word="queue.ecn",
            kind=Words("a choice", ("true", "false")),
            rare="ecn: {}",
            at_sender=True,
            about="Whether packets that allow it are marked instead of dropped (ECN). Default: the discipline's own.",
            page="""\
optional, of `codel`, `fq_codel`, `red`, `pie` · `true` or `false`, or one for each direction · default: Linux's, `true`
for `fq_codel` alone · `ecn: true`

Whether a packet whose sender allows it (ECN, RFC 3168) is marked where another one is dropped. `cake` always marks.
Senders allow it with [`ecn: on`](#hostsecn).""",
        ),
    ] = None
    queue_target_ms: Annotated[
        OneWayMs | None,
        _UNLESS_NONE,
        Setting(
            word="queue.target",
            kind=TIME_MS,
            unit="ms",
            rare="target {:g} ms",
            at_sender=True,
            about="Delay in the queue that is accepted. Default: Linux's own, 5ms (15ms for pie).",
            page="""\
optional, of `codel`, `fq_codel`, `pie` · time, or one for each direction · default: Linux's, `5ms`, for `pie` `15ms`
· `target: 5ms`

The delay in the queue that is accepted for long.""",
        ),
    ] = None
    queue_interval_ms: Annotated[
        OneWayMs | None,
        _UNLESS_NONE,
        Setting(
            word="queue.interval",
            kind=TIME_MS,
            unit="ms",
            rare="interval {:g} ms",
            at_sender=True,
            about="Time for which more delay is accepted: about a round trip. Default: Linux's own, 100ms (15ms for "
            "pie).",
            page="""\
optional, of `codel`, `fq_codel`, `cake`, `pie` · time, or one for each direction · default: Linux's, `100ms`, for `pie`
`15ms` · `interval: 30ms`

How long the delay may exceed the target before packets are dropped or marked: about one round trip of those who share
the queue. It is `rtt` of `cake`, whose target is a twentieth of it, and `tupdate` of `pie`, how often that works its
probability out.""",
        ),
    ] = None
    queue_mark_ms: Annotated[
        OneWayMs | None,
        _UNLESS_NONE,
        Setting(
            word="queue.mark",
            kind=TIME_MS,
            unit="ms",
            rare="marks from {:g} ms",
            at_sender=True,
            about="Delay in the queue from which every packet that allows it is marked. Default: none.",
            page="""\
optional, of `codel`, `fq_codel`, `fq` · time, or one for each direction · default: none ·
`mark: 1ms`

Every packet that allows ECN and has waited longer is marked (`ce_threshold`), as DCTCP wants it.""",
        ),
    ] = None
    queue_min_bytes: Annotated[
        QueueBytes | None,
        _UNLESS_NONE,
        Setting(
            word="queue.min",
            kind=SIZE_BYTES,
            unit="bytes",
            rare="from {} bytes",
            counted=True,
            at_sender=True,
            about="Average queue from which red begins to drop or mark. Default: a third of max.",
            page="""\
optional, of `red` · size, or one for each direction · default: a third of `max` ·
`min: 30kB`

The average queue from which `red` begins to drop, or with `ecn: true` to mark.""",
        ),
    ] = None
    queue_max_bytes: Annotated[
        QueueBytes | None,
        _UNLESS_NONE,
        Setting(
            word="queue.max",
            kind=SIZE_BYTES,
            unit="bytes",
            rare="to {} bytes",
            counted=True,
            at_sender=True,
            about="Average queue from which red drops or marks every packet. Default: three times min, or a quarter "
            "of the size.",
            page="""\
optional, of `red` · size, from `min` to the queue's size, or one for each direction · default: three times `min`, or
without that a quarter of the size · `max: 90kB`

The average queue from which `red` drops or marks every packet; between `min` and `max` it does so with a chance that
rises to 2 %. Where both are equal this is a marking threshold, and the average is taken over some two packets.""",
        ),
    ] = None
    delay_packets: Packets = 1000
    """The most packets that the delay holds, so many that the delay itself never drops one."""
    seed: Seed | None = None
    """The seed of the random numbers; None when the direction uses none."""
    burst_packets: Annotated[
        BurstPackets,
        _UNLESS_ZERO,
        Setting(
            word="burst",
            kind=BURST_PACKETS,
            unit="packets",
            rare="bursts of {:g}",
            about="Mean number of packets lost in a row; only with a loss. For both directions or {to: 1packet, "
            "from: 8packets}. Default: each is lost on its own.",
            page="""\
optional, only with a loss · number of packets, from `1packet`, or one for each direction · default: each packet is
lost on its own · `burst: 8packets`

Losses come in bursts with this mean number of packets, as on a radio link or in a full buffer; `loss` stays the share
of all packets that is lost. It is Gilbert's model (1960), netem's `loss gemodel` with `1-h` = 100 % and `1-k` = 0 %:
in a burst all is lost, and between two bursts nothing. With a loss L and a burst of n packets, a burst ends with
each packet by the chance 1/n, and begins by L / (n (1 − L)). With a loss of 2 % and bursts of 8 packets, every 392nd
packet begins a burst in the mean. From a loss of 50 % on, n has a least value, which the error names.""",
            tc=Tc(
                words=lambda _: (),  # what the loss is told says it
                read=shown_burst,
                slack=lambda way: 0.01 * way.burst_packets,
            ),
            wire=(
                burst_field("burst_begins", 0, "beginning of bursts"),
                burst_field("burst_ends", 1, "end of bursts"),
            ),
            read_wire=lambda wire: LOSS_OF_ALL / wire["burst_ends"] if wire["burst_ends"] else 0.0,
        ),
    ] = 0.0
    """The mean number of packets lost in a row. With 0 each is lost on its own. 0 is not stored, here and below."""
    reorder_percent: Annotated[
        Percent,
        _UNLESS_ZERO,
        Setting(
            rare="{:g} % overtake",
            about="Share of packets that take no delay and so overtake others; only with a delay. For both directions "
            "or {to: 1%, from: 0%}. Default: 0%.",
            page="""\
optional, only with a delay · share, or one for each direction · default: `0%` · `reorder: 5%`

Share of packets that take no delay, and so overtake those that do. Such a link has no single round trip: the
certificate measures its round trips, and judges neither them nor TCP.""",
            **of_share("reorder"),
        ),
    ] = 0.0
    duplicate_percent: Annotated[
        Percent,
        _UNLESS_ZERO,
        Setting(
            rare="{:g} % twice",
            about="Share of packets that arrive twice, in each direction or {to: 1%, from: 0%}. Default: 0%.",
            page="""\
optional · share, or one for each direction · default: `0%` · `duplicate: 1%`

Share of packets that are sent twice; each of the two is then lost, delayed and corrupted on its own.""",
            **of_share("duplicate"),
        ),
    ] = 0.0
    corrupt_percent: Annotated[
        Percent,
        _UNLESS_ZERO,
        Setting(
            rare="{:g} % corrupt",
            about="Share of packets with one wrong bit, in each direction or {to: 1%, from: 0%}. Default: 0%.",
            page="""\
optional · share, or one for each direction · default: `0%` · `corrupt: 0.1%`

Share of packets in which one bit is flipped. A checksum finds it and the packet is dropped, so the plan counts it as
lost. In virtual time the bit lies after the Ethernet header. In real time it may lie in the header, and a packet with
only a wrong sender there arrives: 6 of the 98 bytes of an echo.""",
            **of_share("corrupt"),
        ),
    ] = 0.0
    slot_ms: Annotated[
        OneWayMs,
        _UNLESS_ZERO,
        Setting(
            word="slot",
            rare="slots of {:.2f} ms",
            about="Packets that come within this time arrive together, as over a radio. For both directions or "
            "{to: 10ms, from: 0ms}. Default: 0ms.",
            page="""\
optional · time, or one for each direction · default: `0ms` · `slot: 10ms`

Packets that come within this time of a first packet arrive together at its end, as where a radio or a cable modem gives
each station its turn. A packet waits for one slot at the most, in addition to its delay. In real time netem decides
when a slot begins.""",
            **of_time(
                "slot_ns",
                "slot_ms",
                lambda ms: ("slot", microseconds(ms), microseconds(ms)) if ms else (),
                lambda netem: netem.get("slot", {}).get("min-delay", 0.0),
            ),
        ),
    ] = 0.0

    @property
    def rate_bps(self) -> int | None:
        return None if self.rate_mbit is None else round(self.rate_mbit * _BITS_A_MBIT)

    @property
    def bursts(self) -> tuple[float, float] | None:
        """The chances that a burst of losses begins, and that it ends, with a packet (Gilbert, 1960). All packets of a
        burst are lost. None means that each packet is lost on its own.
        """
        lost = self.loss_percent / 100
        return (lost / (self.burst_packets * (1 - lost)), 1 / self.burst_packets) if self.in_bursts else None

    @property
    def in_bursts(self) -> bool:
        return self.burst_packets > 0 and 0 < self.loss_percent < 100

    @property
    def by_chance(self) -> bool:
        """Whether the direction uses random numbers, and so needs a seed."""
        return bool(self.jitter_ms or self.spoils)

    @property
    def spoils(self) -> bool:
        """Whether some packets do not come once, in order and whole."""
        return any((self.loss_percent, self.reorder_percent, self.duplicate_percent, self.corrupt_percent))

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
SETTABLE: Mapping[str, Setting] = {each.word: each for each in LINK_SETTINGS if each.under_traffic}
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


def amount(word: str, written: object) -> tuple[str, Amount | None]:
    """The field that `word` names, and its new value; None means the declared value. Raises ValueError."""
    if word not in SETTABLE:
        raise ValueError(f"{shown(word)} cannot be set: write {listed([*SETTABLE])}")
    setting = SETTABLE[word]
    return setting.field, None if written == DECLARED else setting.parse(written)


def _optional() -> dict[str, Any]:
    """The fields of `Shaping` that can be set under traffic, each with its own bounds, or None."""
    fields = {each.field: Shaping.model_fields[each.field] for each in BY_FIELD.values() if each.under_traffic}
    bounded: dict[str, Any] = {
        name: getitem(Annotated, (info.annotation, *info.metadata)) for name, info in fields.items()
    }
    return {name: (each | None, None) for name, each in bounded.items()}


if TYPE_CHECKING:

    class Amounts(BaseModel):
        """Values that replace declared settings of a direction, by field. None means the declared value."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        def __init__(self, **amounts: Any) -> None: ...

        def __getattr__(self, field: str) -> Any: ...

else:
    Amounts = create_model("Amounts", __config__=ConfigDict(frozen=True, extra="forbid"), **_optional())


_FIRST, _BEHIND = f"### `links[].{LINK_SETTINGS[0].word}`\n", "### `links[].mtu`\n"
_SETTABLE = "All from `delay` on can also be [set](lab.md#set-and-partition) while the lab is up.\n\n"


def sections() -> str:
    """A heading and a text for each setting, in the order of the schema."""
    of_each = (f"### `links[].{each.word}`\n{each.page}\n\n" for each in LINK_SETTINGS)
    return "".join(of_each) + _SETTABLE


def written_into(page: str) -> str:
    """The page with these sections in place of those that it has."""
    before, first, rest = page.partition(_FIRST)
    _, behind, after = rest.partition(_BEHIND)
    if not first or not behind:
        raise ValueError("the page has no place for the settings of links")
    return before + sections() + behind + after

"""Losses that come in a row."""

from __future__ import annotations

from minigts.language.quantities import BURST_PACKETS, LOSS_PERCENT
from minigts.topology.link_setting import LOSS_OF_ALL, Options, Setting, Tc, Way, WireField, wire_share

ALL_PERCENT = 100.0


def _shown(netem: Options) -> float:
    """The mean length of bursts; 0 when there are none."""
    return 0.0 if (gilbert := netem.get("loss-gemodel")) is None else 1 / gilbert["r"]


def _chance(name: str, number: int, label: str) -> WireField:
    """The wire's field for one of two chances: that a burst begins with a frame (0), or ends with one (1)."""

    def value(way: Way) -> int:
        return wire_share(100 * (way.bursts or (0.0, 0.0))[number])

    return WireField(name=name, value=value, per=LOSS_OF_ALL / 100, unit="%", label=label)


LENGTH = Setting(
    word="burst",
    kind=BURST_PACKETS,
    unit="packets",
    inside="length",
    rare="bursts of {:g}",
    about="Mean number of packets lost in a row, or a mapping, as in {length: 8packets, loss: 60%}; only with "
    "a loss. For both directions or {to: 1packet, from: 8packets}. Default: each is lost on its own.",
    page="""\
optional, only with a loss · number of packets, from `1packet`, or one for each direction, or a mapping · default: each
packet is lost on its own · `burst: 8packets`, `burst: {length: 8packets, loss: 60%, between: 0.1%}`

Losses come in bursts with this mean number of packets, as on a radio link or in a full buffer; `loss` stays the share
of all packets that is lost. With the number alone it is Gilbert's model (1960), netem's `loss gemodel` with `1-h` =
100 % and `1-k` = 0 %: in a burst all is lost, and between two bursts nothing. With a loss L and a burst of n packets, a
burst ends with each packet by the chance 1/n, and begins by L / (n (1 − L)). With a loss of 2 % and bursts of 8
packets, every 392nd packet begins a burst in the mean. From a loss of 50 % on, n has a least value, which the error
names.""",
    tc=Tc(
        words=lambda _: (),  # what the loss is told says it
        read=_shown,
        slack=lambda way: 0.01 * way.burst_packets,
    ),
    wire=(
        _chance("burst_begins", 0, "beginning of bursts"),
        _chance("burst_ends", 1, "end of bursts"),
    ),
    read_wire=lambda wire: LOSS_OF_ALL / wire["burst_ends"] if wire["burst_ends"] else 0.0,
)

LOSS = Setting(
    word="burst.loss",
    kind=LOSS_PERCENT,
    unit="%",
    rare="{:g} % of a burst lost",
    about="Share of packets lost in a burst; only with a burst. Default: 100%.",
    page="""\
optional, only with a burst · loss, more than the link's `loss`, or one for each direction · default: `100%` ·
`burst: {length: 8packets, loss: 60%}`

The share of a burst's packets that is lost: Elliott's model (1963), whose bad state loses some packets and not all.
`length` is the length of the bad state, whatever is lost in it. netem calls this share `1-h`. With the share B, the
share G [between bursts](#linksburstbetween) and the loss L of all packets, (L − G) / (B − G) of all packets are in
bursts. Four figures as netem takes them, p, r, 1-h and 1-k, are `length: 1/r`, `loss` and `between` here, and the
link's `loss` is (p (1-h) + r (1-k)) / (p + r).""",
    tc=Tc(
        words=lambda _: (),  # what the loss is told says it
        read=lambda netem: ALL_PERCENT * (netem.get("loss-gemodel") or {}).get("1-h", 1.0),
        slack=lambda _: 1e-4,
    ),
    wire=(
        WireField(
            name="burst_spares",
            value=lambda way: wire_share(ALL_PERCENT - way.burst_loss_percent),
            per=LOSS_OF_ALL / 100,
            unit="%",
            label="what a burst spares",
        ),
    ),
    read_wire=lambda wire: ALL_PERCENT * (1 - wire["burst_spares"] / LOSS_OF_ALL),
)

BETWEEN = Setting(
    word="burst.between",
    kind=LOSS_PERCENT,
    unit="%",
    rare="{:g} % between bursts lost",
    about="Share of packets lost between bursts; only with a burst. Default: 0%.",
    page="""\
optional, only with a burst · loss, less than the link's `loss`, or one for each direction · default: `0%` ·
`burst: {length: 8packets, loss: 60%, between: 0.1%}`

The share of packets that is lost outside of bursts, each on its own: what the good state of Elliott's model loses.
netem calls it `1-k`.""",
    tc=Tc(
        words=lambda _: (),
        read=lambda netem: ALL_PERCENT * (netem.get("loss-gemodel") or {}).get("1-k", 0.0),
        slack=lambda _: 1e-4,
    ),
    wire=(
        WireField(
            name="between_bursts",
            value=lambda way: wire_share(way.burst_between_percent),
            per=LOSS_OF_ALL / 100,
            unit="%",
        ),
    ),
)

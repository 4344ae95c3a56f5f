"""What a link does to packets, setting by setting: the one list of them. The reference page's sections come of it,
too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from minigts.language.problems import listed, shown
from minigts.language.quantities import (
    BURST_PACKETS,
    LOSS_PERCENT,
    PACKET_BYTES,
    QUEUE,
    RATE_MBIT,
    SHARE_PERCENT,
    SIZE_BYTES,
    TIME_MS,
    FileName,
    Words,
)
from minigts.topology import disciplines, opportunities, own_delays, queue_sizes
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
from minigts.topology.jitter import OWN, STANDARD_DEVIATION, median_part, shown_correlation, shown_order, spread
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
    percent,
    shown_burst,
    shown_limit,
    shown_loss,
    wire_share,
    word_of,
)
from minigts.topology.time import Time

_BITS_A_MBIT = 1_000_000
_KEEPS_ORDER = "100tbit"
"""A rate at which no frame takes a nanosecond. netem with a rate lets none leave before the one that came before."""
DISTRIBUTIONS: tuple[str, ...] = get_args(Distribution)
TABLES = "run/minigts"
"""The directory of a host, below its root, with tables of delays for netem."""
EXCESSES: tuple[str, ...] = get_args(Excess)
JITTER_ORDERS: tuple[str, ...] = get_args(JitterOrder)
ALL_PERCENT = 100.0
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
            inside="range",
            about="How far the one-way delay varies: up and down by up to so much, evenly spread; or a mapping, as in "
            "{sd: 2ms, distribution: normal}. For both directions or {to: 1ms, from: 2ms}. Default: 0ms.",
            page="""\
optional · time, at most the one-way delay, or one for each direction, or a mapping · default: `0ms` · `jitter: 1ms`,
`jitter: {sd: 2ms, distribution: normal, correlation: 25%}`

The one-way delay varies from packet to packet. `jitter: 1ms`, or `{range: 1ms}`, spreads it evenly between delay − 1 ms
and delay + 1 ms. `{sd: 1ms}` is the standard deviation of a [distribution](#linksjitterdistribution) around the delay;
no delay is below 0. Packets arrive in the order in which they were sent, unless
[`order: free`](#linksjitterorder) says otherwise. `minigts set` and schedules set the number alone, `jitter=2ms`: of
`uniform` the range, of the others the standard deviation; the mapping's other keys are `jitter.distribution`,
`jitter.correlation` and `jitter.order` there.""",
            joined=spread,
            beside=(STANDARD_DEVIATION,),
            **of_time(
                "jitter_ns",
                "jitter_ms",
                lambda ms: (microseconds(ms),) if ms else (),  # the delay's second figure
                lambda netem: netem.get("delay", {}).get("jitter", 0.0),
            ),
        ),
    ] = 0.0
    """Of `uniform` how far at the most, of other distributions the standard deviation: as netem and wires take it."""
    jitter_correlation_percent: Annotated[
        Percent,
        _UNLESS_ZERO,
        Setting(
            word="jitter.correlation",
            kind=SHARE_PERCENT,
            unit="%",
            rare="delays {:g} % correlated",
            about="How much each packet's delay is like that of the one before; only with a jitter. Default: 0%.",
            page="""\
optional, only with a jitter · share, or one for each direction · default: `0%` ·
`jitter: {sd: 2ms, distribution: normal, correlation: 25%}`

How much a packet's delay is like that of the one before. In virtual time the delays are an autoregression of the first
order behind the distribution: neighbours have this correlation, packets that are n apart its n-th power, and the
distribution stays as declared. In real time netem mixes each random number with the one before, which also narrows the
distribution: with 50 % a uniform one to 58 % of its deviation.""",
            tc=Tc(
                words=lambda way: (percent(way.jitter_correlation_percent),) if way.jitter_ms else (),
                read=shown_correlation,
                slack=lambda _: 1e-6,
            ),
            wire=(
                WireField(
                    name="jitter_correlation",
                    value=lambda way: wire_share(way.jitter_correlation_percent),
                    per=LOSS_OF_ALL / 100,
                    unit="%",
                ),
            ),
        ),
    ] = 0.0
    jitter_distribution: Annotated[
        Distribution,
        Field(exclude_if=lambda word: word == "uniform"),
        Setting(
            word="jitter.distribution",
            kind=Words("a distribution", DISTRIBUTIONS),
            rare="{} delays",
            about="How delays are spread: uniform, normal, pareto, paretonormal, or as the link's own table; only with "
            "a jitter. Default: uniform.",
            page="""\
optional, only with a jitter · `uniform`, `normal`, `pareto`, `paretonormal` or `table`, or one for each direction ·
default: `uniform`, with a [`table`](#linksjittertable) that one · `jitter: {sd: 2ms, distribution: pareto}`

`pareto` has a long upper tail, which falls with the third power: most packets are a little faster than the delay, and
now and then one is much slower. `paretonormal` is a quarter `normal` and three quarters `pareto`. In virtual time each
is a table of 4096 quantiles from the distribution's formula, with the declared mean and standard deviation; the slowest
packet takes 3.7 standard deviations more with `normal`, and 23 with `pareto`. In real time netem's own tables
apply. Those end at 4 standard deviations, so that `pareto` and `paretonormal` have 82 and 83 % of the declared
deviation there (iproute2 6.1). No kernel shows which table it has, so it is not read back. A link that is set from
another distribution to `uniform` in real time loses the packets that are on their way. A link with a table of its own
is set from it to another distribution, and back, by `jitter.distribution=normal` and `=table`.""",
            tc=Tc(
                words=lambda way: (
                    ()
                    if not way.jitter_ms or way.jitter_distribution == "uniform"
                    else ("distribution", way.distribution_for_tc)
                ),
                read=None,
                slack=lambda _: 0.0,
            ),
            wire=(
                WireField(
                    name="jitter_distribution",
                    value=lambda way: DISTRIBUTIONS.index(way.jitter_distribution),
                    per=1,
                    unit="",
                ),
            ),
            read_wire=lambda wire: word_of(DISTRIBUTIONS, wire["jitter_distribution"]),
        ),
    ] = "uniform"
    jitter_table: Annotated[
        own_delays.Quantiles,
        Field(exclude_if=lambda quantiles: not quantiles),
        Setting(
            word="jitter.table",
            kind=FileName("measured delays, or a table for netem", "delays.txt"),
            in_short=own_delays.in_short,
            rare="a table of {}",
            about="A file of measured one-way delays, one in each line, or a table for netem, NAME.dist: the delays' "
            "distribution. Default: none.",
            page="""\
optional · path of a file, relative to the topology's, or one for each direction, `none` where there is none · default:
none · `jitter: {table: delays.txt}`

A distribution of your own, from a file in the topology's directory. The file has one measured one-way delay in each
line, in ms or with a unit, `12.5` or `800us`; what follows `#` is a remark. Each is as likely as the others, and no
packet has another delay. **Such a list is the link's delay, jitter included:** the link needs neither `delay` nor `sd`,
which are then the list's mean and standard deviation. Where the topology gives them, as in `rtt: 30ms` or `sd: 2ms`,
these hold, and the list gives the shape alone. Round trips, as `ping` measures them, are of two directions: with
`rtt: 30ms` and `jitter: {sd: 2ms, table: round-trips.txt}` they give the shape of each.

A file whose name ends with `.dist` is a table for netem, as `tc` reads it and iproute2's `maketable` makes it: whole
numbers, of which 8192 are a standard deviation. It has no unit, so it needs `sd` and a delay. Its numbers are moved and
scaled to the declared mean and standard deviation, which netem itself leaves to the table.

A file has 2 to 4096 values; of a longer list 4096 quantiles are taken. The plan holds them, and so do the lab's record
and the results, which also keep the file: so nobody needs the file to measure again. In real time netem has the same
numbers to 16 bits, in `/run/minigts` on the receiving host. The table is chosen in the topology alone: `minigts set`
and schedules set `jitter`, its standard deviation, and `jitter.distribution`.""",
            tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),
            wire=(
                WireField(
                    name="jitter_table",
                    value=lambda way: own_delays.numbers(way.jitter_table if way.jitter_ms else ""),
                    per=1,
                    unit="",
                ),
            ),
            read_wire=lambda wire: " ".join(map(str, wire["jitter_table"])),
        ),
    ] = ""
    """The quantiles of the distribution `table`, as `own_delays` has them; empty for every other."""
    jitter_order: Annotated[
        JitterOrder,
        Field(exclude_if=lambda word: word == "kept"),
        Setting(
            word="jitter.order",
            kind=Words("an order", JITTER_ORDERS),
            rare="order {}",
            about="Whether packets arrive in the order in which they were sent, kept, or overtake each other by their "
            "jitter, free. Default: kept.",
            page="""\
optional, only with a jitter · `kept` or `free`, or one for each direction · default: `kept` ·
`jitter: {range: 1ms, order: free}`

With `kept` a packet that would arrive before one that was sent earlier arrives together with it, as in a queue.
With `free` each has its own delay, and packets overtake each other; TCP, QUIC and SRT then show what reordering does to
them. In real time the order is kept by netem's `rate`, of 100 Tbit/s.""",
            tc=Tc(
                words=lambda way: ("rate", _KEEPS_ORDER if way.jitter_ms and way.jitter_order == "kept" else "0bit"),
                read=shown_order,
                slack=lambda _: 0.0,
            ),
            wire=(
                WireField(
                    name="jitter_overtakes", value=lambda way: JITTER_ORDERS.index(way.jitter_order), per=1, unit=""
                ),
            ),
            read_wire=lambda wire: word_of(JITTER_ORDERS, wire["jitter_overtakes"]),
        ),
    ] = "kept"
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
            inside="mean",
            at_sender=True,
            about="Highest rate in each direction or {to: 50mbit, from: 5mbit}, Ethernet headers counted; or a "
            "mapping, as in {mean: 100mbit, burst: 1MB, excess: drop}. Default: unlimited.",
            page="""\
optional · rate, or one for each direction, or a mapping · default: unlimited · `rate: 50mbit`,
`rate: {mean: 100mbit, burst: 1MB, excess: drop}`

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
    rate_burst_bytes: Annotated[
        CreditBytes,
        _UNLESS_ZERO,
        Setting(
            word="rate.burst",
            kind=SIZE_BYTES,
            unit="bytes",
            counted=True,
            at_sender=True,
            rare="credit of {:.0f} bytes",
            about="Bytes that may leave at once after a pause, beyond the rate; only with a rate. Default: none.",
            page="""\
optional, only with a rate · size, or one for each direction · default: none · `rate: {mean: 100mbit, burst: 1MB}`

A token bucket, as clouds throttle: while a link is idle it saves up this many bytes, at its rate. What it has saved
leaves at once, or at the rate that [`peak`](#linksratepeak) says. In any time t no more than burst + rate × t leaves,
and a frame more where the burst is smaller than a frame. The certificate does not measure the rate there, since TCP
gets more until the credit is used up. In real time the burst is that of `tbf`, which otherwise has what the rate sends
in 4 ms.""",
            tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),  # tbf's burst, which every rate has
            wire=(WireField(name="credit_bytes", value=lambda way: way.rate_burst_bytes, per=1, unit="bytes"),),
        ),
    ] = 0
    rate_peak_mbit: Annotated[
        RateMbit | None,
        _UNLESS_NONE,
        Setting(
            word="rate.peak",
            kind=RATE_MBIT,
            unit="Mbit/s",
            at_sender=True,
            rare="peak of {:g} Mbit/s",
            about="The rate at which a burst leaves, above the mean; only with a burst. Default: it leaves at once.",
            page="""\
optional, only with a burst, not with `excess: drop`; above the mean rate · rate, or one for each direction · default:
none · `rate: {mean: 100mbit, burst: 1MB, peak: 200mbit}`

The rate at which credit leaves, as the line of a throttled link has it, or a cloud's instance. In any time t no more
than peak × t leaves, a frame aside, and no more than burst + mean × t. A burst that fills the link lasts
burst / (peak − mean): 80 ms for 1 MB, 100 and 200 Mbit/s. The queue, in front of both, then counts whole frames. In
real time it is the `peakrate` of `tbf`, whose `mtu` is what the peak sends in 4 ms; within less time its bytes may
leave at once. `tc` shows that `mtu` and not the peak itself, so in real time `check` compares the `mtu`.""",
            tc=Tc(
                words=lambda _: (),  # with the burst, which its `mtu` depends on
                read=None,
                slack=lambda _: 0.0,
            ),
            wire=(WireField(name="peak_bps", value=lambda way: way.peak_bps, per=_BITS_A_MBIT, unit="Mbit/s"),),
        ),
    ] = None
    rate_excess: Annotated[
        Excess,
        Field(exclude_if=lambda word: word == "queue"),
        Setting(
            word="rate.excess",
            kind=Words("what becomes of the excess", EXCESSES),
            at_sender=True,
            rare="excess: {}",
            about="What becomes of packets beyond rate and burst: queue or drop, as a policer does. Default: queue.",
            page="""\
optional, only with a rate; `drop` only with a burst of a full frame or more · `queue` or `drop`, or one for each
direction · default: `queue` · `rate: {mean: 100mbit, burst: 1MB, excess: drop}`

With `drop` nothing waits for the rate: what exceeds rate and burst is lost, as a policer has it. A `queue` beside it is
an error. TCP then loses a window's worth at once when the burst is used up, and the certificate measures no rate
(Flach and others, 2016). In real time it is the action `police` where frames arrive, so that the sender's TCP sees no
local drop, as on a line. The host's kernel needs that action: those of `uml` and Debian's have it; natively `mininet`
has what this machine's kernel has.""",
            tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),
            wire=(WireField(name="excess_drops", value=lambda way: EXCESSES.index(way.rate_excess), per=1, unit=""),),
            read_wire=lambda wire: word_of(EXCESSES, wire["excess_drops"]),
        ),
    ] = "queue"
    queue_bytes: Annotated[
        QueueBytes | None,
        Setting(
            word="queue",
            kind=QUEUE,
            unit="bytes",
            inside="size",
            instead=(queue_sizes.PACKETS, queue_sizes.TIME),
            counted=True,
            at_sender=True,
            about="Queue in front of the rate, as 100kB, 100packets or 50ms, for each direction or {to: 100kB, from: "
            "20kB}. Default: rate x (RTT of the link + 20ms), at least 64kB.",
            page="""\
optional, only with a rate · size, number of packets or time, at least one frame, or one for each direction · default:
rate × (RTT of the link + 20 ms), at least 64 kB · `queue: 100kB`, `queue: 100packets`, `queue: 50ms`

Size of the queue in front of the rate. The default is one bandwidth-delay product of the link and 20 ms for the rest of
the path. In bytes, Ethernet headers count. With `100packets` a hundred packets wait at the most, whatever their size,
the one that is leaving included. `50ms` is what the rate sends in that time, so that no packet waits longer: 62,500
bytes at 10 Mbit/s. Where the rate changes, by `set`, a schedule or a trace, so does the size. The plan shows the bytes
of each, packets as full frames: 100 packets are 151,400 bytes at MTU 1500. [Disciplines](#queue-disciplines) that count
packets count them as declared; to others packets are full frames in bytes.""",
            tc=Tc(
                words=lambda way: () if way.queue_bytes is None else ("limit", str(way.queue_bytes)),
                read=shown_limit,
                slack=lambda way: 0.01 * (way.queue_bytes or 0) + (way.rate_mbit or 0) / 8,  # what a microsecond holds
            ),
            wire=(
                WireField(
                    name="queue_bytes",
                    value=lambda way: (
                        way.queue_bytes
                        if (way.trace or way.rate_mbit is not None) and not queue_sizes.counts_packets(way)
                        else None
                    ),
                    per=1,
                    unit="bytes",
                ),
            ),
        ),
    ] = None
    """In a plan it is None exactly when rate_mbit is None; it follows from the two below, where one is given."""
    queue_packets: Annotated[QueuePackets | None, _UNLESS_NONE, queue_sizes.PACKETS] = None
    queue_ms: Annotated[QueueMs | None, _UNLESS_NONE, queue_sizes.TIME] = None
    queue_discipline: Annotated[
        Literal["fifo", "bfifo", "pfifo", "codel", "fq_codel", "cake", "red", "pie", "fq"],
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
optional, only with a rate · `fifo`, `bfifo`, `pfifo`, `codel`, `fq_codel`, `cake`, `red`, `pie` or `fq`, or one for
each direction · default: `fifo` · `discipline: fq_codel`

Which of the waiting packets is sent next, and which are dropped or marked. `queue: 100kB` is the same as
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
    trace: Annotated[opportunities.Runs, Field(exclude_if=lambda runs: not runs)] = ""
    """The delivery opportunities that a schedule plays in place of the rate; empty: the rate holds."""
    burst_packets: Annotated[
        BurstPackets,
        _UNLESS_ZERO,
        Setting(
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
    """The mean number of packets in a burst. With 0 each is lost on its own. 0 is not stored, here and below."""
    burst_loss_percent: Annotated[
        Percent,
        Field(exclude_if=lambda share: share == ALL_PERCENT),
        Setting(
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
        ),
    ] = 100.0
    burst_between_percent: Annotated[
        Percent,
        _UNLESS_ZERO,
        Setting(
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
        ),
    ] = 0.0
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
            **of_share("corrupt", always=True),
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
                lambda ms: ("slot", microseconds(ms), microseconds(ms)),
                lambda netem: netem.get("slot", {}).get("min-delay", 0.0),
            ),
        ),
    ] = 0.0

    blackhole_bytes: Annotated[
        HoleBytes | None,
        Field(exclude_if=lambda size: size is None),
        Setting(
            word="blackhole",
            kind=PACKET_BYTES,
            unit="bytes",
            counted=True,
            rare="larger than {:g} bytes lost",
            about="Largest IP packet that arrives; larger ones are lost without an ICMP answer. For both directions or "
            "{to: 1400B, from: 9000B}. Default: all that the MTU lets be sent.",
            page="""\
optional · number of bytes below the link's MTU, or one for each direction · default: none ·
`blackhole: 1400B`

A black hole for MTU discovery: IP packets of more than so many bytes are lost, and nobody is told. The hosts at both
ends still believe in the link's [`mtu`](#linksmtu), as where a tunnel or a switch on the way carries less, or where a
firewall drops ICMP's "fragmentation needed". TCP stalls over it, unless it finds the size by probing
(`net.ipv4.tcp_mtu_probing`, RFC 4821). The certificate measures no rate there. In virtual and in real time it is the
link that loses, and no host: every packet that is sent over it is judged by its own size, also one that a host
forwards.""",
            tc=Tc(words=lambda _: (), read=None, slack=lambda _: 0.0),
            wire=(WireField(name="hole_bytes", value=lambda way: way.blackhole_bytes, per=1, unit="bytes"),),
        ),
    ] = None
    """The largest IP packet that arrives; None: any."""

    @property
    def rate_bps(self) -> int | None:
        return None if self.rate_mbit is None else round(self.rate_mbit * _BITS_A_MBIT)

    @property
    def peak_bps(self) -> int | None:
        return None if self.rate_peak_mbit is None else round(self.rate_peak_mbit * _BITS_A_MBIT)

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
        part = median_part(self.jitter_distribution, self.jitter_correlation_percent, self.jitter_table)
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
        if self.jitter_distribution != OWN:
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
OF_BURSTS = ("burst_loss_percent", "burst_between_percent")
OF_RATE = ("rate_burst_bytes", "rate_peak_mbit", "rate_excess")
OF_JITTER = ("jitter_correlation_percent", "jitter_distribution", "jitter_table", "jitter_order")
"""The fields that tell how a jitter is, and mean nothing without one."""
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


def in_plan_words(field: str, value: Amount | None) -> str:
    """A value that is set of a field, with the setting's word: `rate 10 mbit`, `delay declared`."""
    if field == "trace":
        return f"trace of {opportunities.in_short(str(value))}" if value else "no trace"
    setting = BY_FIELD[field]
    return f"{setting.word} {setting.in_plan_words(value)}"


def in_words(field: str, value: Amount) -> str:
    """As `in_plan_words`, in the unit that users know: `rate 10 Mbit/s`."""
    if field == "trace":
        return in_plan_words(field, value)
    return f"{BY_FIELD[field].word} {BY_FIELD[field].in_words(value)}"


def amount(word: str, written: object) -> tuple[str, Amount | None]:
    """The field that `word` names, and its new value; None means the declared value. Raises ValueError."""
    if word not in SETTABLE:
        raise ValueError(f"{shown(word)} cannot be set: write {listed([*SETTABLE])}")
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

        model_config = ConfigDict(frozen=True, extra="forbid")

        def __init__(self, **amounts: Any) -> None: ...

        def __getattr__(self, field: str) -> Any: ...

else:
    Amounts = create_model("Amounts", __config__=ConfigDict(frozen=True, extra="forbid"), **_optional())


_FIRST, _BEHIND = f"### `links[].{LINK_SETTINGS[0].word}`\n", "### `links[].mtu`\n"
_SETTABLE = (
    "All from `delay` on, except `jitter.table`, can also be [set](lab.md#set-and-partition) while the lab is up.\n\n"
)


def sections() -> str:
    """A heading and a text for each setting, in the order of the schema."""
    of_each = (f"### `links[].{each.word}`\n{each.page}\n\n" for each in LINK_SETTINGS if not each.of_other_unit)
    return "".join(of_each) + _SETTABLE


def written_into(page: str) -> str:
    """The page with these sections in place of those that it has."""
    before, first, rest = page.partition(_FIRST)
    _, behind, after = rest.partition(_BEHIND)
    if not first or not behind:
        raise ValueError("the page has no place for the settings of links")
    return before + sections() + behind + after

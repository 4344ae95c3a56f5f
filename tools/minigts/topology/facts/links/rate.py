"""How much leaves, and what becomes of the rest."""

from __future__ import annotations

from typing import get_args

from minigts.language.quantities import RATE_MBIT, SIZE_BYTES, Words
from minigts.topology.fields import Excess
from minigts.topology.link_setting import Setting, Tc, WireField, word_of

BITS_A_MBIT = 1_000_000
EXCESSES: tuple[str, ...] = get_args(Excess)

MEAN = Setting(
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
        read=lambda tbf: tbf["rate"] * 8 / BITS_A_MBIT,
        slack=lambda way: 0.01 * (way.rate_mbit or 0),
    ),
    wire=(WireField(name="rate_bps", value=lambda way: way.rate_bps, per=BITS_A_MBIT, unit="Mbit/s"),),
)

BURST = Setting(
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
)

PEAK = Setting(
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
    wire=(WireField(name="peak_bps", value=lambda way: way.peak_bps, per=BITS_A_MBIT, unit="Mbit/s"),),
)

EXCESS = Setting(
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
)

"""The queue in front of a rate: how large, in bytes, packets or time, and by which discipline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from minigts.language.quantities import QUEUE, QUEUE_MS, QUEUE_PACKETS, SIZE_BYTES, TIME_MS, Words
from minigts.topology import disciplines
from minigts.topology.link_setting import Options, Setting, Tc, Way, WireField

V = TypeVar("V")

_SPARE_MS = 20.0
_SMALLEST_BYTES = 64_000

PACKETS = Setting(
    field="queue_packets",
    word="queue",
    of_other_unit=True,
    kind=QUEUE_PACKETS,
    unit="packets",
    rare="queue of {:g} packets",
    counted=True,
    at_sender=True,
    about="",
    page="",
    wire=(
        WireField(
            name="queue_frames",
            value=lambda way: way.queue_packets if counts_packets(way) else None,
            per=1,
            unit="packets",
        ),
    ),
)
TIME = Setting(
    field="queue_ms",
    word="queue",
    of_other_unit=True,
    kind=QUEUE_MS,
    unit="ms",
    rare="queue of {:g} ms",
    at_sender=True,
    about="",
    page="",
)
SIZES = ("queue_bytes", PACKETS.field, TIME.field)
"""The fields of `Shaping` of which a direction has one at the most, but for the bytes that follow from the others."""


def _shown_limit(tbf: Options) -> int:
    """The queue in front of a rate, in bytes. A peak has to be there as `peakrate`, in bytes a second: tc does not
    show it."""
    # tc shows the limit as the time that a full queue takes beyond the burst, unless that is negative; with a peak as
    # the longer one of two such times.
    if "limit" in tbf:
        return int(tbf["limit"])
    at_rate: float = tbf["lat"] * tbf["rate"] / 1_000_000 + tbf["burst"]
    at_peak: float = tbf["lat"] * tbf["peakrate"] / 1_000_000 + tbf.get("minburst", 0) if "peakrate" in tbf else at_rate
    return round(min(at_rate, at_peak))


SIZE = Setting(
    word="queue",
    kind=QUEUE,
    unit="bytes",
    inside="size",
    instead=(PACKETS, TIME),
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
        read=_shown_limit,
        slack=lambda way: 0.01 * (way.queue_bytes or 0) + (way.rate_mbit or 0) / 8,  # what a microsecond holds
    ),
    wire=(
        WireField(
            name="queue_bytes",
            value=lambda way: (
                way.queue_bytes if (way.trace or way.rate_mbit is not None) and not counts_packets(way) else None
            ),
            per=1,
            unit="bytes",
        ),
    ),
)

DISCIPLINE = Setting(
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
)

ECN = Setting(
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
)

TARGET = Setting(
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
)

INTERVAL = Setting(
    word="queue.interval",
    kind=TIME_MS,
    unit="ms",
    rare="interval {:g} ms",
    at_sender=True,
    about="Time for which more delay is accepted: about a round trip. Default: Linux's own, 100ms (15ms for pie).",
    page="""\
optional, of `codel`, `fq_codel`, `cake`, `pie` · time, or one for each direction · default: Linux's, `100ms`, for `pie`
`15ms` · `interval: 30ms`

How long the delay may exceed the target before packets are dropped or marked: about one round trip of those who share
the queue. It is `rtt` of `cake`, whose target is a twentieth of it, and `tupdate` of `pie`, how often that works its
probability out.""",
)

MARK = Setting(
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
)

MIN = Setting(
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
)

MAX = Setting(
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
)


def counts_packets(way: Way) -> bool:
    """Whether the link's own queue counts packets, whatever their size: a `fifo` that is declared so."""
    waits = bool(way.trace) or (way.rate_mbit is not None and not way.polices)
    return waits and way.queue_packets is not None and way.queue_discipline == "fifo"


def declared_bytes(way: Way, rate_mbit: float | None, frame_bytes: int) -> int | None:
    """The declared queue in bytes, in front of that rate and for full frames of so many bytes; None where there is no
    rate, or the size is not declared."""
    if rate_mbit is None:
        return None
    if way.queue_packets is not None:
        return int(way.queue_packets) * frame_bytes
    if way.queue_ms is not None:
        return math.ceil(rate_mbit * 1000 / 8 * float(way.queue_ms))
    return None if way.queue_bytes is None else int(way.queue_bytes)


def default_bytes(rate_mbit: float | None, rtt_ms: float) -> int | None:
    """The queue in front of a rate whose size is not declared: rate x (RTT of the link + 20 ms), at least 64 kB.

    One bandwidth-delay product keeps a link busy under TCP (Villamizar and Song, 1994). The 20 ms stand for the rest of
    the path, and for scheduling, where the link itself adds hardly any delay.
    """
    if rate_mbit is None:
        return None
    return max(_SMALLEST_BYTES, math.ceil(rate_mbit * 1000 / 8 * (rtt_ms + _SPARE_MS)))


def planned_bytes(way: Way, rate_mbit: float | None, rtt_ms: float, frame_bytes: int) -> int | None:
    """The queue in bytes as it will be, declared or not; None where there is no rate."""
    size = declared_bytes(way, rate_mbit, frame_bytes)
    return default_bytes(rate_mbit, rtt_ms) if size is None else size


def other_sizes(fields: Iterable[str]) -> dict[str, None]:
    """Where one of these fields is a queue's size, all such fields, as None: a size takes the place of any other."""
    return dict.fromkeys(SIZES) if not set(SIZES).isdisjoint(fields) else {}


def replace_size(update: Mapping[str, V]) -> dict[str, V | None]:
    """The update, with None for the sizes of a queue that it replaces."""
    return {**other_sizes(update), **update}

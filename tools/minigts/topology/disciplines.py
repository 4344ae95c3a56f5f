"""The queue disciplines of links: which options each has, what `tc` is told of them, and what it shows. Pure.

Sources: tc-tbf(8), tc-codel(8), tc-fq_codel(8), tc-cake(8), tc-red(8), tc-pie(8), tc-fq(8); for red's defaults Floyd's
notes of 1997 (http://www.icir.org/floyd/REDparameters.txt).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minigts.topology.link_setting import Amount, Argv, Options, Way, microseconds

FIFO = "fifo"
"""The discipline of a link whose file names none. The wire has the queue in virtual time; in real time `tbf` itself
has it, or where packets are counted `pfifo` below it."""
_OF_PACKETS = "pfifo"
CHILD = "1:1"
"""The class of a port's `tbf` in which the discipline is."""
_AVERAGE_PACKET = 1000
_PROBABILITY = "0.02"
_BUFFER_OF_BYTE = 2
"""Cake counts the memory of packets: some twice their bytes for a frame of 1514."""
_SLACK_MS = 0.002


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a discipline, in the words of `tc`. Values are in the plan's unit."""

    words: Callable[[Any], Argv]
    read: Callable[[Options], Amount | None]
    """The value that `tc -j qdisc show` has under `options`; None where it shows none."""
    slack: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Discipline:
    """A queue discipline of Linux, below the `tbf` of a port."""

    number: int
    """Its number in handles, from 1 to 15."""
    limit: str
    """The key and word of its size: `limit`, `memlimit`."""
    counts: str = "packets"
    """What its size counts: packets, bytes or memory."""
    options: Mapping[str, Option]
    """By field of `Shaping`."""
    always: Callable[[Way], Argv] = lambda _: ()
    """The words that it needs in any case."""

    def size(self, way: Way, frame_bytes: int) -> int:
        """The size of the queue in what the discipline counts, for full frames of so many bytes."""
        size = int(way.queue_bytes or 0)
        if self.counts == "packets":
            return int(way.queue_packets or max(1, -(-size // frame_bytes)))
        return size * _BUFFER_OF_BYTE if self.counts == "memory" else size


def _time(word: str) -> Option:
    return Option(
        words=lambda ms: (word, microseconds(ms)),
        read=lambda shown: None if word not in shown else shown[word] / 1000,
        slack=_SLACK_MS,
    )


_ECN = Option(
    words=lambda value: ("ecn" if value == "true" else "noecn",), read=lambda shown: str(bool(shown.get("ecn"))).lower()
)
_ONLY_ECN = Option(words=lambda value: ("ecn",) if value == "true" else (), read=_ECN.read)
_TARGET, _INTERVAL, _MARK = _time("target"), _time("interval"), _time("ce_threshold")


def _threshold(word: str) -> Option:
    return Option(words=lambda _: (), read=lambda shown: shown.get(word))  # `_red` has both words in any case


def thresholds(way: Way) -> tuple[int, int]:
    """The bytes of red's queue from which it begins to mark or drop, and from which it does so with every packet."""
    size = int(way.queue_bytes or 0)
    least = way.queue_min_bytes if way.queue_min_bytes is not None else max(1, (way.queue_max_bytes or size // 4) // 3)
    most = way.queue_max_bytes if way.queue_max_bytes is not None else min(size, 3 * least)
    return least, max(least, most)


def _red(way: Way) -> Argv:
    least, most = thresholds(way)
    # The fewer packets the average is taken over, the closer it is to the queue itself. One threshold is for senders
    # that need the queue itself, as DCTCP does.
    over = -(-least // _AVERAGE_PACKET) if least == most else -(-(2 * least + most) // (3 * _AVERAGE_PACKET))
    average = ("avpkt", str(_AVERAGE_PACKET), "burst", str(max(over, 1)), "probability", _PROBABILITY)
    return ("min", str(least), "max", str(most), *average, "bandwidth", f"{way.rate_bps}bit")


_CODEL = {"queue_ecn": _ECN, "queue_target_ms": _TARGET, "queue_interval_ms": _INTERVAL, "queue_mark_ms": _MARK}
DISCIPLINES: Mapping[str, Discipline] = {
    "bfifo": Discipline(number=1, limit="limit", counts="bytes", options={}),
    "pfifo": Discipline(number=8, limit="limit", options={}),
    "codel": Discipline(number=2, limit="limit", options=_CODEL),
    "fq_codel": Discipline(number=3, limit="limit", options=_CODEL),
    "cake": Discipline(number=4, limit="memlimit", counts="memory", options={"queue_interval_ms": _time("rtt")}),
    "red": Discipline(
        number=5,
        limit="limit",
        counts="bytes",
        options={"queue_ecn": _ONLY_ECN, "queue_min_bytes": _threshold("min"), "queue_max_bytes": _threshold("max")},
        always=_red,
    ),
    "pie": Discipline(
        number=6,
        limit="limit",
        options={"queue_ecn": _ECN, "queue_target_ms": _TARGET, "queue_interval_ms": _time("tupdate")},
    ),
    "fq": Discipline(number=7, limit="limit", options={"queue_mark_ms": _MARK}),
}
"""All but `fifo`, which is the link's own queue."""
NAMES = (FIFO, *DISCIPLINES)
OPTIONS = tuple(dict.fromkeys(field for each in DISCIPLINES.values() for field in each.options))
"""The fields of `Shaping` that are options of some discipline."""


def word(field: str) -> str:
    """The word of an option: `queue.target` of `queue_target_ms`."""
    return "queue." + field.split("_")[1]


def is_in_host(way: Way) -> bool:
    """Whether the sender's kernel has the queue of this direction even where links have wires."""
    return inner_discipline(way, carried=True) is not None


def inner_discipline(way: Way, *, carried: bool) -> str | None:
    """The discipline below the `tbf` of the sender's kernel; None where that has none, or no discipline below it.
    `carried`: a wire has the link's own queue."""
    if way.rate_mbit is None or way.polices:
        return None
    if way.queue_discipline != FIFO:
        return str(way.queue_discipline)
    return _OF_PACKETS if way.queue_packets is not None and not carried else None


def words(way: Way, frame_bytes: int, name: str) -> Argv:
    """The discipline of that name (`below_tbf`) as `tc qdisc` is told: its handle, kind and options.

    The handle differs with the options, so that a discipline with other options is a new one: an option that is left
    out would otherwise stay. Another size keeps it, and what waits in it.
    """
    own = DISCIPLINES[name]
    given = [option.words(value) for field, option in own.options.items() if (value := getattr(way, field)) is not None]
    options = (*own.always(way), *(each for several in given for each in several))
    fixed = [each for each in given if each]
    handle = f"{own.number << 12 | zlib.crc32(repr(fixed).encode()) & 0xFFF:x}:"
    return ("handle", handle, name, own.limit, str(own.size(way, frame_bytes)), *options)


def shown_fields(qdisc: Mapping[str, Any] | None, way: Way) -> dict[str, Any]:
    """The fields of `Shaping` by an item of `tc -j qdisc show`, below the `tbf` of a port that should send `way`;
    without one it is a fifo."""
    read = _shown(qdisc)
    own = DISCIPLINES.get(read["queue_discipline"])
    if qdisc is not None and own is not None and own.counts == "packets" and way.queue_packets is not None:
        read["queue_packets"] = qdisc.get("options", {}).get(own.limit)
        if (read["queue_discipline"], way.queue_discipline) == (_OF_PACKETS, FIFO):
            read["queue_discipline"] = FIFO
    return read


def _shown(qdisc: Mapping[str, Any] | None) -> dict[str, Any]:
    kind = FIFO if qdisc is None else str(qdisc["kind"])
    own = DISCIPLINES[kind].options if kind in DISCIPLINES else {}
    read = {field: option.read((qdisc or {}).get("options", {})) for field, option in own.items()}
    return {**dict.fromkeys(OPTIONS), **read, "queue_discipline": kind}


def differences(way: Way, frame_bytes: int, qdisc: Mapping[str, Any] | None, name: str) -> Iterator[str]:
    """How the discipline that a host shows differs from the one of this direction, which is the one of that name
    (`below_tbf`)."""
    has = _shown(qdisc)
    if qdisc is None or has["queue_discipline"] != name:
        yield f"the queue discipline is {has['queue_discipline']}, should be {name}"
        return
    own = DISCIPLINES[name]
    size, wanted_size = int(qdisc["options"].get(own.limit, 0)), own.size(way, frame_bytes)
    if size != wanted_size:
        yield f"the size of {name} is {size} {own.counts}, should be {wanted_size}"
    wanted = {field: getattr(way, field) for field in own.options}
    if name == "red":
        wanted["queue_min_bytes"], wanted["queue_max_bytes"] = thresholds(way)
    for field, value in wanted.items():
        there = has[field]
        if value is None or there == value:
            continue
        if isinstance(value, str) or there is None or abs(float(there) - value) > own.options[field].slack:
            yield f"{word(field)} is {'none' if there is None else there}, should be {value}"

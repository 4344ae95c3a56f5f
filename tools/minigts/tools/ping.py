"""ping of iputils: echo requests at a steady pace, and the longest gap between their replies."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from pydantic import Field

from minigts.language.quantities import WINDOW_BYTES
from minigts.tools.base import (
    START_S,
    Measured,
    ParseError,
    PathUnderTest,
    Tool,
    clamp,
    complaint,
    count,
    number,
    rtt_ms,
)
from minigts.tools.columns import LOSS, MAX, MEAN, MIN, STDEV, VALUE, Column, value
from minigts.tools.options import MOST_COUNTED, Count, Duration, Options, Size, written_duration
from minigts.topology.plan.elements import Path

LOST = Column("lost", "lost", "")
GAP = Column("gap_ms", "longest gap", "ms", quantity="gap", follows=("delay", "loss", "rate"))
_FIGURE = r"([\d.]{1,40})"
_ANSWER = rf"icmp_seq=\d{{1,10}} (?:[a-z]{{1,10}}=\d{{1,5}} )?time={_FIGURE} ms"
"""Every part of these expressions has a length limit, as a faulty program could print a line of any length."""
_ARRIVED = r"^\[(\d{1,20}\.\d{1,20})\] \d{1,10} bytes from"
_REPLY = re.compile(_ANSWER)
_ARRIVAL = re.compile(_ARRIVED, re.MULTILINE)
_TIMED_REPLY = re.compile(rf"{_ARRIVED} [^ \n]{{1,300}}(?: \([^ \n]{{1,100}}\))?:? {_ANSWER}", re.MULTILINE)
_COUNTS = re.compile(
    rf"^(\d{{1,400}}) packets transmitted, (\d{{1,400}}) received,(?: [^,\n]{{1,60}},){{0,4}} {_FIGURE}% packet loss",
    re.MULTILINE,
)
_TIMES = re.compile(rf"= {_FIGURE}/{_FIGURE}/{_FIGURE}/{_FIGURE} ms")


class PingOptions(Options):
    """`count` echo requests, one every `interval`."""

    count: Count = 10
    """How many echo requests."""
    interval_s: Duration = Field(default=0.01, alias="interval")
    """The time from one echo request to the next; 10 ms by default."""
    buffer: Size | None = None
    """The room for requests that wait in the host, as for a neighbour's address; by default ping's own, some ten."""

    def lasting(self, duration_s: float) -> Self:
        """The same options with as many requests as fit. Raises ValueError for more than can be counted."""
        requests = max(1, round(duration_s / self.interval_s))
        if requests > MOST_COUNTED:
            raise ValueError(
                f"{requests:,} echo requests, one every {written_duration(self.interval_s)}, in "
                f"{written_duration(duration_s)}; at most {MOST_COUNTED:,} are possible"
            )
        return self.model_copy(update={"count": requests})


@dataclass(frozen=True)
class Pings:
    """One run, with the times of the replies that came."""

    median_ms: float
    min_ms: float
    mean_ms: float
    max_ms: float
    mdev_ms: float
    sent: int
    received: int
    loss_percent: float
    replies_ms: tuple[float, ...]
    gap_ms: float | None
    """The longest time between two successive replies; None without the replies' arrival times."""


def argv(options: PingOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line."""
    return (
        "ping",
        "-n",
        "-D",
        "-c",
        str(options.count),
        "-i",
        f"{options.interval_s:g}",
        "-W",
        _patience(way),
        *(["-S", str(WINDOW_BYTES.parse_whole(options.buffer))] if options.buffer is not None else []),
        way.address,
    )


def _patience(way: PathUnderTest) -> str:
    """How long to wait for replies after the last request, in whole seconds."""
    return str(max(3, math.ceil(2 * way.path.rtt_ms / 1000)))


def seconds(options: PingOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    return options.count * options.interval_s + path.rtt_ms / 1000 + START_S


def parse(stdout: str, stderr: str = "") -> Pings:
    """iputils ping: `[1767225600.123456] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=4.84 ms`, with the time in
    front for -D, and its last two lines.

    Replies of 100 ms and more are printed in whole milliseconds; their median is limited to mean ± deviation.
    Raises ParseError, also when no reply came.
    """
    counts, times = _COUNTS.search(stdout), _TIMES.search(stdout)
    if not counts:
        raise ParseError(f"ping: {complaint(stderr) or complaint(stdout) or 'no statistics'}")
    replies = tuple(number(text, "time") for text in _REPLY.findall(stdout))
    if not times or not replies:
        raise ParseError(f"ping: none of {counts[1][:15]} packets came back")
    low, mean, high, mdev = (number(text, "rtt") for text in times.groups())
    return Pings(
        median_ms=clamp(statistics.median(replies), max(low, mean - mdev), min(high, mean + mdev)),
        min_ms=low,
        mean_ms=mean,
        max_ms=high,
        mdev_ms=mdev,
        sent=count(counts[1]),
        received=count(counts[2]),
        loss_percent=number(counts[3], "loss"),
        replies_ms=replies,
        gap_ms=_longest_gap_ms([number(text, "time") for text in _ARRIVAL.findall(stdout)]),
    )


def _longest_gap_ms(arrivals_s: Sequence[float]) -> float | None:
    """The longest time between arrivals in ms, to the microsecond as ping prints them; None for fewer than two."""
    return max((round(1000 * (later - earlier), 3) for earlier, later in pairwise(arrivals_s)), default=None)


def read(stdout: str, stderr: str) -> Measured:
    """The value is the median of the replies."""
    run = parse(stdout, stderr)
    extra = {MIN.name: run.min_ms, MEAN.name: run.mean_ms, MAX.name: run.max_ms, STDEV.name: run.mdev_ms}
    extra |= {LOSS.name: run.loss_percent, LOST.name: float(max(0, run.sent - run.received))}
    if run.gap_ms is not None:
        extra[GAP.name] = max(0.0, run.gap_ms)
    return Measured(run.median_ms, extra)


def series(stdout: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Each reply's round trip in ms, by when its request was sent, in seconds since the first one was."""
    times = [(number(at, "time"), number(rtt, "time")) for at, rtt in _TIMED_REPLY.findall(stdout)]
    sent = [(arrived - rtt / 1000, rtt) for arrived, rtt in times]
    began = min((at for at, _ in sent), default=0.0)
    return {VALUE: [(round(at - began, 6), rtt) for at, rtt in sent]}


TOOL = Tool(
    name="ping",
    usual_name="latency",
    value=value("RTT", "ms", quantity="latency", follows="delay"),
    columns=(MIN, MEAN, MAX, STDEV, LOSS, LOST, GAP),
    package="iputils-ping",
    options=PingOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    series=series,
    predicted=rtt_ms,
)

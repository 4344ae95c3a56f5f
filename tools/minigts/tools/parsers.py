"""What netperf, iperf3 and ping print, as numbers with units. Pure; anything unexpected is one ParseError."""

from __future__ import annotations

import json
import math
import re
import statistics
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from minigts.errors import MinigtsError


class ParseError(MinigtsError):
    """A tool's output holds no result. The message is one short line that says why."""


@dataclass(frozen=True)
class RoundTrips:
    """One netperf request-response run. Exact: min, mean, max, stdev. `histogram_p99_ms` comes from netperf's
    histogram, whose steps are a tenth of the value's power of ten (1 ms at 20 ms, 10 ms at 160 ms)."""

    median_ms: float
    min_ms: float
    mean_ms: float
    max_ms: float
    stdev_ms: float
    histogram_p99_ms: float
    transactions_per_s: float
    intervals: int
    """How many interim results the median stands on; 0: none, and the histogram's median stands in."""


@dataclass(frozen=True)
class TcpFlow:
    """One iperf3 TCP run, without its omitted start."""

    received_mbit: float
    sent_mbit: float
    retransmits: int
    mean_rtt_ms: float | None
    max_cwnd_bytes: int | None
    intervals_mbit: tuple[float, ...]
    congestion: str


@dataclass(frozen=True)
class UdpFlow:
    """One iperf3 UDP run. `received_mbit` counts payload, and divides by the time in which it was sent."""

    received_mbit: float
    sent_mbit: float
    offered_mbit: float
    lost_percent: float
    lost: int
    datagrams: int
    datagram_bytes: int
    jitter_ms: float
    out_of_order: int


@dataclass(frozen=True)
class Pings:
    """One ping run; times of the replies that came."""

    median_ms: float
    min_ms: float
    mean_ms: float
    max_ms: float
    mdev_ms: float
    sent: int
    received: int
    loss_percent: float
    replies_ms: tuple[float, ...]


_KEY_VALUE = re.compile(r"([A-Z][A-Z0-9_]*)(?:\[\d+\])?=(.*)")
_PING_REPLY = re.compile(r"icmp_seq=\d+ .*time=([\d.]+) ms")
_PING_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) received,.* ([\d.]+)% packet loss")
_PING_TIMES = re.compile(r"= ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms")


def netperf_rr(stdout: str, stderr: str = "") -> RoundTrips:
    """netperf UDP_RR or TCP_RR: lines `MEAN_LATENCY=161902.00` (microseconds) and, with `-f b -D -0.000001`, for
    each exchange `NETPERF_INTERIM_RESULT[3]=98.72` (bytes both ways per second).

    netperf's own median comes from a histogram, too coarse for a sum of segments (164285 for 161.7 ms). Minimum,
    mean, maximum and deviation are exact. Each interim result gives one exchange's time and what netperf does
    between exchanges, most of it constant; so the median is the exact minimum plus the distance from the shortest
    interval to the median one. The first interval is left out: it holds the start. Without them the histogram's
    median stands in. Either is held to mean ± deviation, where every median lies.
    Raises ParseError. Source: netperf 2.7 manual, section 4.1 (-D) and section 9 (omni output selectors).
    """
    matches = filter(None, (_KEY_VALUE.fullmatch(line.strip()) for line in stdout.splitlines()))
    pairs = [(found[1], found[2]) for found in matches]
    values = dict(pairs)
    rates = [number(value, key) for key, value in pairs if key == "NETPERF_INTERIM_RESULT"]
    if "MEAN_LATENCY" not in values:
        said = complaint(stderr) or complaint(_without_values(stdout))
        raise ParseError(f"netperf: {said or 'no final values'}")

    def final(key: str) -> float:
        return number(values.get(key, ""), key)

    low, mean, high, stdev = (final(f"{key}_LATENCY") / 1000 for key in ("MIN", "MEAN", "MAX", "STDDEV"))
    in_bits = "bits/s" in values.get("NETPERF_UNITS", "")
    units = final("REQUEST_SIZE") + final("RESPONSE_SIZE") if in_bits else 1.0
    intervals_ms = [1000 * units / rate for rate in rates[1:] if rate > 0]
    middle = final("P50_LATENCY") / 1000
    if intervals_ms:
        middle = low + statistics.median(intervals_ms) - min(intervals_ms)
    return RoundTrips(
        median_ms=_held(middle, max(low, mean - stdev), min(high, mean + stdev)),
        min_ms=low,
        mean_ms=mean,
        max_ms=high,
        stdev_ms=stdev,
        histogram_p99_ms=final("P99_LATENCY") / 1000,
        transactions_per_s=final("TRANSACTION_RATE"),
        intervals=len(intervals_ms),
    )


def _held(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def ping(stdout: str, stderr: str = "") -> Pings:
    """iputils ping: `64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=4.84 ms` and its two last lines.

    Replies of 100 ms and more are printed in whole milliseconds; their median is held to mean ± deviation.
    Raises ParseError, also when no reply came.
    """
    counts, times = _PING_COUNTS.search(stdout), _PING_TIMES.search(stdout)
    if not counts:
        raise ParseError(f"ping: {complaint(stderr) or complaint(stdout) or 'no statistics'}")
    replies = tuple(number(text, "time") for text in _PING_REPLY.findall(stdout))
    if not times or not replies:
        raise ParseError(f"ping: none of {counts[1][:15]} packets came back")
    low, mean, high, mdev = (number(text, "rtt") for text in times.groups())
    return Pings(
        median_ms=_held(statistics.median(replies), max(low, mean - mdev), min(high, mean + mdev)),
        min_ms=low,
        mean_ms=mean,
        max_ms=high,
        mdev_ms=mdev,
        sent=_count(counts[1]),
        received=_count(counts[2]),
        loss_percent=number(counts[3], "loss"),
        replies_ms=replies,
    )


_Whole = Annotated[int, Field(gt=-(2**63), lt=2**63)]
"""What iperf3 counts in 64 bits; JSON could hold more, and a float then could not."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Sum(_Part):
    seconds: FiniteFloat = Field(gt=0)
    bytes: _Whole = Field(ge=0)
    bits_per_second: FiniteFloat = Field(ge=0)
    retransmits: _Whole = 0
    lost_packets: _Whole = 0
    packets: _Whole = 0
    lost_percent: FiniteFloat = 0.0
    jitter_ms: FiniteFloat = 0.0
    omitted: bool = False


class _Interval(_Part):
    sum: _Sum


class _TcpSender(_Part):
    max_snd_cwnd: _Whole | None = None
    mean_rtt: FiniteFloat | None = None


class _UdpStream(_Part):
    out_of_order: _Whole = 0


class _Stream(_Part):
    sender: _TcpSender | None = None
    udp: _UdpStream | None = None


class _End(_Part):
    streams: list[_Stream] = []
    sum: _Sum | None = None
    sum_sent: _Sum | None = None
    sum_received: _Sum | None = None
    sender_tcp_congestion: str = ""


class _TestStart(_Part):
    protocol: str
    blksize: _Whole = 0
    target_bitrate: FiniteFloat = 0.0


class _Start(_Part):
    test_start: _TestStart | None = None


class _Iperf3(_Part):
    start: _Start
    intervals: list[_Interval] = []
    end: _End
    error: str | None = None


def iperf3_tcp(stdout: str, stderr: str = "") -> TcpFlow:
    """`iperf3 -J` over TCP, 3.12 to 3.22: `{"start": {…}, "intervals": […], "end": {"sum_received": {…}, …}}`.

    The receiver's rate is over the receiver's own time. Raises ParseError.
    """
    report, sent, received = _iperf3(stdout, stderr, "TCP")
    senders = [stream.sender for stream in report.end.streams if stream.sender]
    rtts = [sender.mean_rtt for sender in senders if sender.mean_rtt is not None]
    windows = [sender.max_snd_cwnd for sender in senders if sender.max_snd_cwnd is not None]
    return TcpFlow(
        received_mbit=received.bits_per_second / 1e6,
        sent_mbit=sent.bits_per_second / 1e6,
        retransmits=sent.retransmits,
        mean_rtt_ms=statistics.fmean(rtts) / 1000 if rtts else None,
        max_cwnd_bytes=max(windows, default=None),
        intervals_mbit=tuple(
            interval.sum.bits_per_second / 1e6 for interval in report.intervals if not interval.sum.omitted
        ),
        congestion=report.end.sender_tcp_congestion,
    )


def iperf3_udp(stdout: str, stderr: str = "") -> UdpFlow:
    """`iperf3 -J -u`, 3.12 to 3.22; loss and jitter are the receiver's.

    iperf3 divides what was received by a time that also holds the round trip in which the receiver learns of the
    end (1.16 s for 1 s over 161 ms): a longer path would seem slower. Here it is divided by the sender's time.
    Raises ParseError.
    """
    report, sent, received = _iperf3(stdout, stderr, "UDP")
    test = report.start.test_start
    seconds = min(sent.seconds, received.seconds)
    return UdpFlow(
        received_mbit=received.bytes * 8 / seconds / 1e6,
        sent_mbit=sent.bits_per_second / 1e6,
        offered_mbit=(test.target_bitrate if test else 0.0) / 1e6,
        lost_percent=received.lost_percent,
        lost=received.lost_packets,
        datagrams=received.packets,
        datagram_bytes=test.blksize if test else 0,
        jitter_ms=received.jitter_ms,
        out_of_order=sum(stream.udp.out_of_order for stream in report.end.streams if stream.udp),
    )


def _iperf3(stdout: str, stderr: str, protocol: str) -> tuple[_Iperf3, _Sum, _Sum]:
    """The report with what was sent and received. Raises ParseError, with iperf3's own words where it has some."""
    if not stdout.strip():
        raise ParseError(f"iperf3: {complaint(stderr) or 'printed nothing'}")
    try:
        report = _Iperf3.model_validate(json.loads(stdout, parse_constant=_no_constant))
    except json.JSONDecodeError as error:
        raise ParseError(f"iperf3: output is not JSON ({error.msg.lower()}, line {error.lineno})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "document"
        raise ParseError(f"iperf3: {where}: {first['msg'].lower()}") from error
    except (ValueError, RecursionError) as error:
        raise ParseError("iperf3: output is not JSON that can be read") from error
    if report.error:
        raise ParseError(f"iperf3: {complaint(report.error)}")
    test = report.start.test_start
    if test is None or test.protocol != protocol:
        raise ParseError(f"iperf3: not a {protocol} test")
    sent, received = report.end.sum_sent, report.end.sum_received
    if sent is None or received is None:
        raise ParseError("iperf3: the test did not end; nothing received is reported")
    return report, sent, received


def _no_constant(text: str) -> float:
    raise ValueError(text)


def number(text: str, key: str) -> float:
    """A finite number, not negative. Raises ParseError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ParseError(f"{key}: {text[:40]!r} is not a number")
    return value


def _count(text: str) -> int:
    return int(number(text[:15], "count"))


def _without_values(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _KEY_VALUE.fullmatch(line.strip()))


def complaint(text: str) -> str:
    """A tool's first line of complaint, cut to a readable length; empty when there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:160] if lines else ""

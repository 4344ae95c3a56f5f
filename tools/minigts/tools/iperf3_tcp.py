"""iperf3 over TCP: the goodput of one stream or several."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from minigts.language.fields import matching, whole
from minigts.tools import iperf3
from minigts.tools.base import SETUP_ROUND_TRIPS, START_S, Measured, PathUnderTest, Prediction, Tool
from minigts.tools.columns import SENT, Column, value
from minigts.tools.options import Duration, Size, WholeSeconds, size_bytes, written_duration
from minigts.tools.payload import tcp_goodput
from minigts.topology.plan.elements import Path
from minigts.topology.tcp import Goodput

RETRANSMITS = Column("retransmits", "retransmits", "", tabled=True)
RTT = Column("rtt_ms", "RTT", "ms")
WINDOW = Column("cwnd_bytes", "cwnd", "bytes")
_CONGESTION_HINT = "a congestion control: write it as in cubic or reno"
_CONGESTION = re.compile(r"[a-z]{2,15}", re.ASCII)
CONGESTION = Annotated[str, *matching(_CONGESTION_HINT, _CONGESTION)]


def _interval(value_s: float) -> float:
    if not 0.1 <= value_s <= 60:
        raise ValueError(f"{written_duration(value_s)} is no interval of iperf3's: 100ms to 60s are possible")
    return value_s


class TcpOptions(iperf3.FlowOptions):
    """One TCP stream for `duration`, after a first `omit` that is thrown away (slow start)."""

    duration_s: WholeSeconds = Field(default=2.0, alias="duration")
    """How long the flow is measured, in whole seconds; 2 s by default."""
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    """How much of the beginning does not count, in whole seconds, before `duration`; nothing by default."""
    streams: Annotated[int, *whole("a number of streams", 1, 128)] = 1
    """How many streams are sent at once; 1 by default."""
    window: Size | None = None
    """The buffers of both sockets, which limit the window; by default the kernel tunes them."""
    congestion: CONGESTION | None = None
    """The sender's congestion control: reno, cubic, bbr, …; by default the kernel's, cubic."""
    interval_s: Annotated[Duration, AfterValidator(_interval)] = Field(default=1.0, alias="interval")
    """How often throughput, window and round trip are reported, for a `series`; 1 s by default."""

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})


@dataclass(frozen=True)
class TcpFlow:
    """One run without its omitted beginning."""

    received_mbit: float
    sent_mbit: float
    retransmits: int
    mean_rtt_ms: float | None
    max_cwnd_bytes: int | None
    payload_bytes: int | None
    """All the payload that arrived; None where a beginning was omitted."""
    intervals_mbit: tuple[float, ...]
    congestion: str


def argv(options: TcpOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line."""
    omit = ("-O", f"{options.omit_s:g}") if options.omit_s else ()
    streams = ("-P", str(options.streams)) if options.streams > 1 else ()
    window = ("-w", str(size_bytes(options.window))) if options.window else ()
    congestion = ("-C", options.congestion) if options.congestion else ()
    interval = ("-i", f"{options.interval_s:g}") if options.interval_s != 1 else ()
    return (*iperf3.client(way), "-t", f"{options.duration_s:g}", *omit, *streams, *window, *congestion, *interval)


def seconds(options: TcpOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    return options.duration_s + (options.omit_s or 0) + SETUP_ROUND_TRIPS * path.rtt_ms / 1000 + START_S


def parse(stdout: str, stderr: str = "") -> TcpFlow:
    """`iperf3 -J` over TCP, 3.12 to 3.22: `{"start": {…}, "intervals": […], "end": {"sum_received": {…}, …}}`.

    The receiver's rate is over the receiver's own time. Raises ParseError.
    """
    report, sent, received = iperf3.report(stdout, stderr, "TCP")
    senders = [stream.sender for stream in report.end.streams if stream.sender]
    rtts = [sender.mean_rtt for sender in senders if sender.mean_rtt is not None]
    windows = [sender.max_snd_cwnd for sender in senders if sender.max_snd_cwnd is not None]
    return TcpFlow(
        received_mbit=received.bits_per_second / 1e6,
        sent_mbit=sent.bits_per_second / 1e6,
        retransmits=sent.retransmits,
        mean_rtt_ms=statistics.fmean(rtts) / 1000 if rtts else None,
        max_cwnd_bytes=max(windows, default=None),
        payload_bytes=None if any(interval.sum.omitted for interval in report.intervals) else received.bytes,
        intervals_mbit=tuple(
            interval.sum.bits_per_second / 1e6 for interval in report.intervals if not interval.sum.omitted
        ),
        congestion=report.end.sender_tcp_congestion,
    )


def read(stdout: str, stderr: str) -> Measured:
    """The value is what the receiver received."""
    run = parse(stdout, stderr)
    extra = {SENT.name: run.sent_mbit, RETRANSMITS.name: float(run.retransmits)}
    if run.mean_rtt_ms is not None:
        extra[RTT.name] = run.mean_rtt_ms
    if run.max_cwnd_bytes is not None:
        extra[WINDOW.name] = float(run.max_cwnd_bytes)
    return Measured(run.received_mbit, extra, payload_bytes=run.payload_bytes)


def series(stdout: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """For the middle of each interval: Mbit/s sent, the sum of all streams' windows in bytes, the mean of their round
    trips in ms, and retransmissions. The omitted beginning is included, and its seconds count.

    A round trip of 0 is left out: the kernel does not know it yet.
    """
    report, _, _ = iperf3.report(stdout, "", "TCP")
    found: dict[str, list[tuple[float, float]]] = {name.name: [] for name in (SENT, WINDOW, RTT, RETRANSMITS)}
    began_s = 0.0
    for each in report.intervals:
        at_s, began_s = began_s + each.sum.seconds / 2, began_s + each.sum.seconds
        windows = [stream.snd_cwnd for stream in each.streams if stream.snd_cwnd is not None]
        rtts = [stream.rtt / 1000 for stream in each.streams if stream.rtt]
        found[SENT.name].append((at_s, each.sum.bits_per_second / 1e6))
        found[RETRANSMITS.name].append((at_s, float(each.sum.retransmits)))
        found[WINDOW.name] += [(at_s, float(sum(windows)))] if windows else []
        found[RTT.name] += [(at_s, statistics.fmean(rtts))] if rtts else []
    return found


def prediction(options: TcpOptions, way: PathUnderTest) -> float | None:
    """The upper bound of all streams together, in Mbit/s."""
    expected = _expected(options, way)
    return None if expected is None else expected.most_mbit


def least(options: TcpOptions, way: PathUnderTest) -> float | None:
    """The lower bound, where buffers may be the limit; None otherwise."""
    expected = _expected(options, way)
    return None if expected is None else expected.least_mbit


def _expected(options: TcpOptions, way: PathUnderTest) -> Goodput | None:
    asked_bytes = None if options.window is None else size_bytes(options.window)
    return tcp_goodput(way, asked_bytes=asked_bytes, streams=options.streams)


TOOL = Tool(
    name="iperf3-tcp",
    usual_name="tcp",
    value=value("TCP", "Mbit/s", quantity="throughput", follows="rate"),
    columns=(SENT, RETRANSMITS, RTT, WINDOW),
    package="iperf3",
    options=TcpOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    series=series,
    predicted=prediction,
    least=least,
    fills=lambda _options: True,
    prediction=Prediction("ceiling", "the highest TCP goodput that the plan allows"),
)

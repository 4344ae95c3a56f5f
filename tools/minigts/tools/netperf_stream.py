"""netperf's stream test: how much a sender can send, and how much of it arrives. Unlike iperf3, its receiver computes
no jitter, and its sender writes no time and no sequence number into the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field

from minigts.errors import InputError
from minigts.tools.base import SETUP_ROUND_TRIPS, START_S, Measured, ParseError, PathUnderTest, Prediction, Tool
from minigts.tools.columns import LOSS, SENT, value
from minigts.tools.netperf import PORT, NetperfOutput, client
from minigts.tools.options import Options, WholeSeconds
from minigts.tools.payload import Datagram, carried_mbit, datagram_bytes, tcp_goodput
from minigts.topology.plan.elements import Path

SELECTORS = "LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME"
UNITS = "10^6bits/s"


class StreamOptions(Options):
    """Datagrams of one size, or a stream of bytes, as fast as they can be sent for `duration`."""

    duration_s: WholeSeconds = Field(default=2.0, alias="duration")
    """How long is sent, in whole seconds; 2 s by default."""
    protocol: Literal["udp", "tcp"] = "udp"
    """The transport protocol; udp by default."""
    datagram: Datagram = "fit"
    """The payload of a udp datagram, written as for iperf3-udp."""

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})


@dataclass(frozen=True)
class Stream:
    """One run; all figures count payload."""

    sent_mbit: float
    received_mbit: float
    payload_bytes: float


def argv(options: StreamOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line. Raises InputError where nothing would limit the sender."""
    if options.protocol == "udp" and way.calls_are_free:
        raise InputError(
            f"{way.path.source} to {way.path.target}: nothing limits netperf's sender in virtual time, where system "
            f"calls take no time; give the host `processor: {{call: 5us}}`, or use iperf3-udp, which has a rate"
        )
    # Without -R 1 netperf's datagrams do not leave the segment (SO_DONTROUTE): netperf's manual, section 5.2.3.
    size = str(datagram_bytes(options.datagram, way.mtu, way.family))
    udp = ("-R", "1", "-m", size) if options.protocol == "udp" else ()
    return (
        *client(way),
        *("-p", str(PORT), "-t", f"{options.protocol.upper()}_STREAM"),
        *("-l", f"{options.duration_s:g}", "-f", "m", "-P", "0", "--", *udp, "-k", SELECTORS),
    )


def seconds(options: StreamOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    return options.duration_s + SETUP_ROUND_TRIPS * path.rtt_ms / 1000 + START_S


def parse(stdout: str, stderr: str = "") -> Stream:
    """netperf UDP_STREAM or TCP_STREAM: lines `REMOTE_RECV_THROUGHPUT=93.21`, in the unit of
    `THROUGHPUT_UNITS=10^6bits/s`. Raises ParseError. Source: netperf 2.7 manual, section 9 (omni output selectors)."""
    printed = NetperfOutput(stdout, stderr, "REMOTE_RECV_THROUGHPUT")
    if printed.text("THROUGHPUT_UNITS") != UNITS:
        raise ParseError(f"netperf: the unit is {printed.text('THROUGHPUT_UNITS')[:40]!r}, not {UNITS}")
    received_mbit = printed.number("REMOTE_RECV_THROUGHPUT")
    payload_bytes = received_mbit * 1e6 / 8 * printed.number("ELAPSED_TIME")
    return Stream(printed.number("LOCAL_SEND_THROUGHPUT"), received_mbit, payload_bytes)


def read(stdout: str, stderr: str) -> Measured:
    """The value is what arrived."""
    run = parse(stdout, stderr)
    lost = max(0.0, 1 - run.received_mbit / run.sent_mbit) if run.sent_mbit else 0.0
    extra = {SENT.name: run.sent_mbit, LOSS.name: 100 * lost}
    return Measured(run.received_mbit, extra, payload_bytes=run.payload_bytes)


def prediction(options: StreamOptions, way: PathUnderTest) -> float | None:
    """The payload in Mbit/s that the path's lowest rate carries, for datagrams less the links' declared loss."""
    if options.protocol == "tcp":
        expected = tcp_goodput(way)
        return None if expected is None else expected.most_mbit
    carried = carried_mbit(options.datagram, way)
    return None if carried is None else carried * (1 - way.path.loss_percent / 100)


def least(options: StreamOptions, way: PathUnderTest) -> float | None:
    """The lower bound for TCP, where the hosts' buffers may be the limit; None otherwise."""
    expected = tcp_goodput(way) if options.protocol == "tcp" else None
    return None if expected is None else expected.least_mbit


TOOL = Tool(
    name="netperf-stream",
    usual_name="stream",
    value=value("stream", "Mbit/s", quantity="throughput", follows="rate"),
    columns=(SENT, LOSS),
    package="netperf",
    options=StreamOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    predicted=prediction,
    least=least,
    prediction=Prediction("ceiling", "what the links carry of it"),
    endless=lambda options: options.protocol == "udp",
    fills=lambda options: options.protocol == "tcp",
)

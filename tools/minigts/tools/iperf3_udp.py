"""iperf3 over UDP: how much of a steady rate arrives, the loss, and the jitter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BeforeValidator, Field

from minigts.errors import InputError
from minigts.language.fields import text_schema, whole
from minigts.language.quantities import OFFERED_MBIT, OFFERED_PERCENT
from minigts.tools import iperf3
from minigts.tools.base import SETUP_ROUND_TRIPS, START_S, Measured, ParseError, PathUnderTest, Prediction, Tool
from minigts.tools.columns import JITTER, LOSS, OFFERED, OUT_OF_ORDER, SENT, value
from minigts.tools.options import WholeSeconds, either
from minigts.tools.payload import DEFAULT, Datagram, carried_mbit, datagram_bytes
from minigts.topology.plan.elements import Path

UNLIMITED = "unlimited"
SURELY_MORE = 1.1
"""The payload offered in place of `unlimited` where system calls take no time, as a share of the lowest rate. It is
more than a link can carry with headers, so as much arrives as from a sender without limit."""


def offered_mbit(rate: str, path: Path) -> float:
    """The payload offered, in Mbit/s: `45mbit` → 45.0; `90%` → that share of the path's lowest rate; `unlimited` →
    infinity. Raises InputError for a share when the path has no rate."""
    if rate == UNLIMITED:
        return math.inf
    if rate.endswith("%"):
        if path.rate_mbit is None:
            raise InputError(
                f"{path.source} to {path.target}: rate {rate} is a share of the path's rate, and its links have "
                f"none; give the links a rate in the topology, or write the experiment's in mbit"
            )
        return path.rate_mbit * OFFERED_PERCENT.parse(rate) / 100
    return OFFERED_MBIT.parse(rate)


def _rate(value: object) -> str:
    if value == UNLIMITED:
        return UNLIMITED
    return (OFFERED_PERCENT if isinstance(value, str) and value.endswith("%") else OFFERED_MBIT).normal(value)


Rate = Annotated[
    str,
    BeforeValidator(_rate),
    text_schema(either(UNLIMITED, OFFERED_MBIT, OFFERED_PERCENT), "45mbit", "90%", UNLIMITED),
]


class UdpOptions(iperf3.FlowOptions):
    """Datagrams of one size offered at a steady rate for `duration`, after a first `omit` that is thrown away."""

    duration_s: WholeSeconds = Field(default=1.0, alias="duration")
    """How long the flow is measured, in whole seconds; 1 s by default."""
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    """How much of the beginning does not count, until queues are full, in whole seconds; nothing by default."""
    rate: Rate = "90%"
    """The payload rate offered, or its share of the path's lowest rate; unlimited: as fast as the program can send."""
    datagram: Datagram = "fit"
    """The payload of a datagram; fit: one packet; 3packets: as much as three hold; default: iperf3's own choice."""
    sessions: Annotated[int, *whole("a number of sessions", 1, 64)] | None = None
    """How many hosts send at once, each a stream of this rate: the path's first host and those after it."""

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})


@dataclass(frozen=True)
class UdpFlow:
    """One run. `received_mbit` counts payload."""

    received_mbit: float
    sent_mbit: float
    offered_mbit: float
    lost_percent: float
    lost: int
    datagrams: int
    datagram_bytes: int
    jitter_ms: float
    out_of_order: int
    payload_bytes: int | None
    """All the payload that arrived; None where a beginning was omitted."""


def argv(options: UdpOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line. Raises InputError for a share of a rate that the path does not have."""
    omit = ("-O", f"{options.omit_s:g}", "--get-server-output") if options.omit_s else ()
    size = ("-l", str(datagram_bytes(options.datagram, way.mtu, way.family))) if options.datagram != DEFAULT else ()
    rate = str(_bits_per_s(options.rate, way))
    return (*iperf3.client(way), "-t", f"{options.duration_s:g}", *omit, "-u", "-b", rate, *size)


def _bits_per_s(rate: str, way: PathUnderTest) -> int:
    """The value of `-b`, in bit/s; 0 means no limit. Where calls take no time, a high limit replaces it."""
    if rate != UNLIMITED:
        return round(offered_mbit(rate, way.path) * 1e6)
    if not way.calls_are_free:
        return 0
    if way.path.rate_mbit is None:
        raise InputError(
            f"{way.path.source} to {way.path.target}: nothing limits the sender: in virtual time a system call takes "
            f"no time, and the links have no rate; give the links a rate, or the host `processor: {{call: 5us}}`"
        )
    return round(SURELY_MORE * way.path.rate_mbit * 1e6)


def seconds(options: UdpOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    return options.duration_s + (options.omit_s or 0) + SETUP_ROUND_TRIPS * path.rtt_ms / 1000 + START_S


def parse(stdout: str, stderr: str = "") -> UdpFlow:
    """`iperf3 -J -u`, 3.12 to 3.22; loss and jitter are the receiver's.

    iperf3 divides the bytes received by a time that includes the round trip in which the receiver learns of the end
    (1.16 s for 1 s over 161 ms), so a longer path would seem slower. Here they are divided by the sender's time. With
    full queues that would give too much, as these empty after the sender's end. So where a beginning was omitted, until
    queues are full, the receiver's own seconds count, as many as the sender took.
    Raises ParseError.
    """
    report, sent, received = iperf3.report(stdout, stderr, "UDP")
    test = report.start.test_start
    bytes_, seconds_ = received.bytes, min(sent.seconds, received.seconds)
    lost, datagrams, lost_percent = received.lost_packets, received.packets, received.lost_percent
    if test and test.omit:
        server = report.server_output_json
        own = [each.sum for each in server.intervals if not each.sum.omitted][: test.duration] if server else []
        bytes_, seconds_ = sum(each.bytes for each in own), sum(each.seconds for each in own)
        if len(own) < test.duration or not seconds_:
            raise ParseError("iperf3: the server has not told what it received in each second")
        lost, datagrams = sum(each.lost_packets for each in own), sum(each.packets for each in own)
        lost_percent = 100 * lost / datagrams if datagrams else 100.0  # a receiver cannot miss what never came
    return UdpFlow(
        received_mbit=bytes_ * 8 / seconds_ / 1e6,
        sent_mbit=sent.bits_per_second / 1e6,
        offered_mbit=(test.target_bitrate if test else 0.0) / 1e6,
        lost_percent=lost_percent,
        lost=lost,
        datagrams=datagrams,
        datagram_bytes=test.blksize if test else 0,
        jitter_ms=received.jitter_ms,
        out_of_order=sum(stream.udp.out_of_order for stream in report.end.streams if stream.udp),
        payload_bytes=None if test and test.omit else received.bytes,
    )


def read(stdout: str, stderr: str) -> Measured:
    """The value is what arrived."""
    run = parse(stdout, stderr)
    extra = {SENT.name: run.sent_mbit, OFFERED.name: run.offered_mbit, LOSS.name: run.lost_percent}
    extra |= {JITTER.name: run.jitter_ms, OUT_OF_ORDER.name: float(run.out_of_order)}
    return Measured(run.received_mbit, extra, payload_bytes=run.payload_bytes)


def prediction(options: UdpOptions, way: PathUnderTest) -> float | None:
    """What is offered, or the share of it that the lowest rate carries, less the links' declared loss; in Mbit/s."""
    offered, carried = offered_mbit(options.rate, way.path), carried_mbit(options.datagram, way)
    arrives = offered if carried is None else min(offered, carried)
    return arrives * (1 - way.path.loss_percent / 100) if math.isfinite(arrives) else None


TOOL = Tool(
    name="iperf3-udp",
    usual_name="udp",
    value=value("UDP", "Mbit/s", quantity="throughput", follows="rate"),
    columns=(SENT, OFFERED, LOSS, JITTER, OUT_OF_ORDER),
    package="iperf3",
    options=UdpOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    predicted=prediction,
    prediction=Prediction("expected", "the UDP that should arrive"),
)

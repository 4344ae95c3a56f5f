"""The options, the beginning of the command line and the report (`-J`) that both iperf3 tests share.

An iperf3 server listens at every endpoint and serves one client at a time.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from minigts.language import documents
from minigts.tools.base import ParseError, PathUnderTest, complaint
from minigts.tools.cpu_bound import OF_THE_PROCESSOR
from minigts.tools.options import Options, Share, Switch

PORT = 5201
_BOUNDS = documents.Bounds(elements=2_000_000, bytes=64 << 20)
"""The limits of a report: enough for a day of ten intervals a second."""


class FlowOptions(Options):
    """Options of the hosts around a flow of TCP or UDP."""

    offload: Annotated[Switch | None, OF_THE_PROCESSOR] = None
    """Switches the interface's segmentation and fragmentation offloads at both ends, and reads them back. By default
    they are left as they are."""
    stress: Annotated[Share, OF_THE_PROCESSOR] = "0%"
    """The share of the measuring time for which stress-ng takes a processor of both hosts; 0% by default."""


def client(way: PathUnderTest) -> tuple[str, ...]:
    """The beginning of a client's command line."""
    return ("iperf3", "-c", way.address, "-p", str(way.port or PORT), "-J", "--connect-timeout", "5000")


_Whole = Annotated[int, Field(gt=-(2**63), lt=2**63)]
"""A whole number that iperf3 counts in 64 bits; JSON allows larger ones, which a float cannot hold."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class StreamSum(_Part):
    seconds: FiniteFloat = Field(gt=0)
    bytes: _Whole = Field(ge=0)
    bits_per_second: FiniteFloat = Field(ge=0)
    retransmits: _Whole = 0
    lost_packets: _Whole = 0
    packets: _Whole = 0
    lost_percent: FiniteFloat = 0.0
    jitter_ms: FiniteFloat = 0.0
    omitted: bool = False


class _Moment(StreamSum):
    seconds: FiniteFloat = Field(ge=0)


class _Sending(_Part):
    """One stream in one interval, as its sender's kernel reports it: the window in bytes, the RTT in microseconds."""

    snd_cwnd: _Whole | None = None
    rtt: _Whole | None = None


class _Interval(_Part):
    sum: _Moment
    streams: list[_Sending] = []


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
    sum: StreamSum | None = None
    sum_sent: StreamSum | None = None
    sum_received: StreamSum | None = None
    sender_tcp_congestion: str = ""


class _Counted(_Part):
    seconds: FiniteFloat = Field(ge=0)
    bytes: _Whole = Field(ge=0)
    lost_packets: _Whole = 0
    packets: _Whole = 0
    omitted: bool = False


class _ServersInterval(_Part):
    sum: _Counted


class _ServerOutput(_Part):
    intervals: list[_ServersInterval] = []


class _TestStart(_Part):
    protocol: str
    duration: _Whole = 0
    omit: _Whole = 0
    blksize: _Whole = 0
    target_bitrate: FiniteFloat = 0.0


class _Start(_Part):
    test_start: _TestStart | None = None


class _Iperf3(_Part):
    """The parts that are read of `iperf3 -J`: `{"start": {…}, "intervals": […], "end": {"sum_received": {…}, …}}`."""

    start: _Start
    intervals: list[_Interval] = []
    end: _End
    server_output_json: _ServerOutput | None = None
    """The server's report, where the client asked for it and the server was started with -J, too."""
    error: str | None = None


def report(stdout: str, stderr: str, protocol: str) -> tuple[_Iperf3, StreamSum, StreamSum]:
    """The report, and its sums of what was sent and received. Raises ParseError, with iperf3's own message if any."""
    whole = _read(stdout, stderr, protocol)
    sent, received = whole.end.sum_sent, whole.end.sum_received
    if sent is None or received is None:
        raise ParseError("iperf3: the test did not end; nothing received is reported")
    return whole, sent, received


def _read(stdout: str, stderr: str, protocol: str) -> _Iperf3:
    if not stdout.strip():
        raise ParseError(f"iperf3: {complaint(stderr) or 'printed nothing'}")
    try:
        whole = _Iperf3.model_validate(documents.document(stdout, _BOUNDS))
    except documents.Unreadable as error:
        where = f" (line {error.line})" if error.line else ""
        raise ParseError(f"iperf3: output {error}{where}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "document"
        raise ParseError(f"iperf3: {where}: {first['msg'].lower()}") from error
    if whole.error:
        raise ParseError(f"iperf3: {complaint(whole.error)}")
    test = whole.start.test_start
    if test is None or test.protocol != protocol:
        raise ParseError(f"iperf3: not a {protocol} test")
    return whole

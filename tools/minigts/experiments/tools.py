"""The measuring tools: how each is called, how long it takes, what its output says, and what the plan predicts.

Pure: nothing is started here. A new tool is a model in `model`, a parser in `parsers` and one entry in `TOOLS`.
The servers (netserver, iperf3 -s) listen at every endpoint; an overlay's join script starts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from minigts.errors import InputError
from minigts.experiments.model import AnyMeasurement
from minigts.experiments.options import (
    NetperfOptions,
    PingOptions,
    TcpOptions,
    UdpOptions,
    datagram_bytes,
    size_bytes,
)
from minigts.language.quantities import OFFERED_MBIT, OFFERED_PERCENT
from minigts.overlays import Endpoint
from minigts.overlays.catalogue import HEADER_BYTES
from minigts.tools import parsers
from minigts.topology.plan import Path, Plan

NETSERVER_PORT = 12865
IPERF3_PORT = 5201
NETPERF_SELECTORS = (
    "MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY,STDDEV_LATENCY,"
    "TRANSACTION_RATE,REQUEST_SIZE,RESPONSE_SIZE"
)
MOST_INTERIM_RESULTS = 5000
"""netperf prints some 120 bytes for each; beyond this its histogram, fine at short round trips, is enough."""
START_S = 0.25
"""What starting a program in a container on an emulated host costs, beside the measuring itself."""

Quantity = Literal["latency", "throughput"]


@dataclass(frozen=True)
class Way:
    """From one endpoint to another: the far address, both MTUs in bytes, and the plan's path. `outer_mtu` is what a
    packet of `mtu` bytes has become when a link carries it, encapsulated.
    """

    address: str
    mtu: int
    outer_mtu: int
    path: Path
    port: int = IPERF3_PORT
    """Of iperf3's server."""


@dataclass(frozen=True)
class Measured:
    """A sample's value in its tool's unit, further columns by name, and what else was read back, in words."""

    value: float
    extra: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True)
class Tool:
    """One tool. The first argument of `argv`, `seconds` and `predicted` is its measurement's own options."""

    name: str
    quantity: Quantity
    unit: str
    argv: Callable[[Any, Way], tuple[str, ...]]
    seconds: Callable[[Any, Path], float]
    read: Callable[[str, str], Measured]
    predicted: Callable[[Any, Way], float | None]


def command(measurement: AnyMeasurement, source: Endpoint, way: Way, pace_s: float) -> tuple[str, ...]:
    """The client's whole command line on the source's host. `pace_s` is the provider's.

    Raises InputError for a rate that cannot be known.
    """
    tool = TOOLS[measurement.tool]
    argv = tool.argv(measurement.options, way)
    if tool.quantity == "latency":
        argv = on_a_path_in_use(argv, way.address, pace_s, round(timeout_s(measurement, way.path)))
    return (*source.prefix, *argv)


def on_a_path_in_use(argv: tuple[str, ...], address: str, pace_s: float, at_most_s: int) -> tuple[str, ...]:
    """Run `argv` while echo requests at the provider's pace keep the hosts on the way to `address` from falling asleep.

    A host that has slept for tens of milliseconds takes 0.1 to 0.2 ms longer for its next packet, which is the
    emulator's doing and not the link's. Calibration measures at the same pace: docs/decisions/0003-own-latency.md.
    """
    beside = f'ping -q -n -i {pace_s:g} -w {at_most_s} "$0" >/dev/null 2>&1 & trap "kill $!" EXIT; "$@"'
    return ("sh", "-c", beside, address, *argv)


def warm_up(source: Endpoint, way: Way) -> tuple[str, ...]:
    """One echo request, so that ARP and the overlay's own tables are filled before anything is measured."""
    return (*source.prefix, "ping", "-n", "-c", "1", "-W", "3", way.address)


def estimate_s(measurement: AnyMeasurement, path: Path) -> float:
    """How long one sample takes, in seconds."""
    return TOOLS[measurement.tool].seconds(measurement.options, path)


def timeout_s(measurement: AnyMeasurement, path: Path) -> float:
    """After how many seconds a sample is given up: three times what it should take, and fifteen."""
    return 3 * estimate_s(measurement, path) + 15


def read(tool: str, stdout: str, stderr: str) -> Measured:
    """What a tool's output says. Raises ParseError."""
    return TOOLS[tool].read(stdout, stderr)


def predicted(measurement: AnyMeasurement, way: Way) -> float | None:
    """What the plan promises, in the tool's unit; None when the links have no rate."""
    return TOOLS[measurement.tool].predicted(measurement.options, way)


def underlay_mtu(plan: Plan) -> int:
    """The links' smallest MTU in bytes."""
    return min((port.mtu for host in plan.hosts for port in host.ports), default=1500)


def outer_mtu(mtu: int, underlay: int, seen: Collection[str]) -> int:
    """What a packet of `mtu` bytes has become on links of MTU `underlay`, where `seen` are the encapsulations there.

    Those whose headers are not known beforehand are taken to fill the underlay's MTU.
    """
    added = HEADER_BYTES.get("+".join(seen))
    return underlay if added is None else min(underlay, mtu + added)


def _netperf_argv(options: NetperfOptions, way: Way) -> tuple[str, ...]:
    # Eight bytes each way instead of one fill the same Ethernet frame, and make the interim results, printed with
    # two decimals in bytes per second, exact to some microseconds.
    length = f"{options.duration_s:g}" if options.duration_s else f"-{options.count}"
    interim = ("-f", "b", "-D", "-0.000001") if _exchanges(options, way.path) <= MOST_INTERIM_RESULTS else ()
    return (
        *("netperf", "-4", "-H", way.address, "-p", str(NETSERVER_PORT)),
        *("-t", f"{options.protocol.upper()}_RR", "-l", length, "-P", "0", *interim),
        *("--", "-r", "8,8", "-k", NETPERF_SELECTORS),
    )


def _exchanges(options: NetperfOptions, path: Path) -> float:
    return options.duration_s / (max(path.rtt_ms, 0.1) / 1000) if options.duration_s else options.count


def _netperf_seconds(options: NetperfOptions, path: Path) -> float:
    rtt_s = path.rtt_ms / 1000
    return (options.duration_s or options.count * rtt_s) + 4 * rtt_s + START_S


def _netperf_read(stdout: str, stderr: str) -> Measured:
    """A run counts with its lowest RTT, which netperf gives to the microsecond. Its median can only be estimated from
    interim results, whose printing takes part in what they time: over Swarm that lay up to 0.3 ms above the mean."""
    run = parsers.netperf_rr(stdout, stderr)
    extra = {"median": run.median_ms, "mean": run.mean_ms, "p99": run.histogram_p99_ms, "max": run.max_ms}
    return Measured(run.min_ms, {**extra, "stdev": run.stdev_ms})


def _ping_argv(options: PingOptions, way: Way) -> tuple[str, ...]:
    return ("ping", "-n", "-c", str(options.count), "-i", f"{options.interval_s:g}", "-W", "3", way.address)


def _ping_seconds(options: PingOptions, path: Path) -> float:
    return options.count * options.interval_s + path.rtt_ms / 1000 + START_S


def _ping_read(stdout: str, stderr: str) -> Measured:
    run = parsers.ping(stdout, stderr)
    extra = {"min": run.min_ms, "mean": run.mean_ms, "max": run.max_ms, "stdev": run.mdev_ms}
    return Measured(run.median_ms, {**extra, "loss_percent": run.loss_percent})


def _rtt_ms(_options: object, way: Way) -> float:
    return way.path.rtt_ms


def _iperf3(way: Way) -> tuple[str, ...]:
    return ("iperf3", "-c", way.address, "-p", str(way.port), "-J", "--connect-timeout", "5000")


def _tcp_argv(options: TcpOptions, way: Way) -> tuple[str, ...]:
    omit = ("-O", f"{options.omit_s:g}") if options.omit_s else ()
    streams = ("-P", str(options.streams)) if options.streams > 1 else ()
    window = ("-w", str(size_bytes(options.window))) if options.window else ()
    congestion = ("-C", options.congestion) if options.congestion else ()
    return (*_iperf3(way), "-t", f"{options.duration_s:g}", *omit, *streams, *window, *congestion)


def _tcp_seconds(options: TcpOptions, path: Path) -> float:
    return options.duration_s + (options.omit_s or 0) + 6 * path.rtt_ms / 1000 + START_S


def _tcp_read(stdout: str, stderr: str) -> Measured:
    run = parsers.iperf3_tcp(stdout, stderr)
    extra = {"sent": run.sent_mbit, "retransmits": float(run.retransmits)}
    if run.mean_rtt_ms is not None:
        extra["rtt_ms"] = run.mean_rtt_ms
    if run.max_cwnd_bytes is not None:
        extra["cwnd_bytes"] = float(run.max_cwnd_bytes)
    return Measured(run.received_mbit, extra)


def _tcp_predicted(_options: TcpOptions, way: Way) -> float | None:
    """The lowest rate times payload over frame; the payload is the overlay's MTU less 52 bytes of IP and TCP
    headers with timestamps, the frame what the links carry of it."""
    if way.path.rate_mbit is None:
        return None
    return way.path.rate_mbit * (way.mtu - 52) / (way.outer_mtu + 14)


def offered_mbit(rate: str, path: Path) -> float:
    """`45mbit` → 45.0; `90%` → that share of the path's lowest rate. Raises InputError when the path has none."""
    if rate.endswith("%"):
        if path.rate_mbit is None:
            raise InputError(
                f"{path.source} to {path.target}: rate {rate} is a share of the path's rate, and its links have "
                f"none; give the links a rate in the topology, or write the experiment's in mbit"
            )
        return path.rate_mbit * OFFERED_PERCENT.parse(rate) / 100
    return OFFERED_MBIT.parse(rate)


def _udp_argv(options: UdpOptions, way: Way) -> tuple[str, ...]:
    rate = round(offered_mbit(options.rate, way.path) * 1e6)
    size = datagram_bytes(options.datagram, way.mtu)
    return (*_iperf3(way), "-t", f"{options.duration_s:g}", "-u", "-b", str(rate), "-l", str(size))


def _udp_seconds(options: UdpOptions, path: Path) -> float:
    return options.duration_s + 6 * path.rtt_ms / 1000 + START_S


def _udp_read(stdout: str, stderr: str) -> Measured:
    run = parsers.iperf3_udp(stdout, stderr)
    extra = {"sent": run.sent_mbit, "offered": run.offered_mbit, "loss_percent": run.lost_percent}
    return Measured(run.received_mbit, {**extra, "jitter_ms": run.jitter_ms, "out_of_order": float(run.out_of_order)})


def _udp_predicted(options: UdpOptions, way: Way) -> float | None:
    """What is offered, or what the lowest rate carries of it, less the links' declared loss."""
    offered = offered_mbit(options.rate, way.path)
    if way.path.rate_mbit is not None:
        size = datagram_bytes(options.datagram, way.mtu)
        fragments = math.ceil((size + 8) / (way.mtu - 20))
        frame_bytes = size + 8 + fragments * (20 + 14 + max(0, way.outer_mtu - way.mtu))
        offered = min(offered, way.path.rate_mbit * size / frame_bytes)
    return offered * (1 - way.path.loss_percent / 100)


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("netperf-rr", "latency", "ms", _netperf_argv, _netperf_seconds, _netperf_read, _rtt_ms),
        Tool("ping", "latency", "ms", _ping_argv, _ping_seconds, _ping_read, _rtt_ms),
        Tool("iperf3-tcp", "throughput", "Mbit/s", _tcp_argv, _tcp_seconds, _tcp_read, _tcp_predicted),
        Tool("iperf3-udp", "throughput", "Mbit/s", _udp_argv, _udp_seconds, _udp_read, _udp_predicted),
    )
}

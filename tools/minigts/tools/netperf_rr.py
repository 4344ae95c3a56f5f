"""netperf's request-response test: round trips, one after the other."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from minigts.tools.base import START_S, Measured, PathUnderTest, Tool, clamp, number, rtt_ms
from minigts.tools.columns import MAX, MEAN, MEDIAN, MIN, P99, STDEV, value
from minigts.tools.netperf import PORT, NetperfOutput, client
from minigts.tools.options import Count, Duration, Options
from minigts.topology.plan.elements import Path

SELECTORS = (
    "MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY,STDDEV_LATENCY,"
    "TRANSACTION_RATE,REQUEST_SIZE,RESPONSE_SIZE"
)
MOST_INTERIM_RESULTS = 5000
"""netperf prints some 120 bytes for each. With more exchanges its histogram is used, which is fine for short RTTs."""


class NetperfOptions(Options):
    """Exchanges 8 bytes for 8 bytes, `transactions` times or for `duration`; by default ten times."""

    transactions: Count | None = None
    """How many exchanges are made; not together with duration."""
    duration_s: Duration | None = Field(default=None, alias="duration")
    """For how long exchanges are made; not together with transactions."""
    protocol: Literal["udp", "tcp"] = "udp"
    """udp has no retransmission, so one lost packet stalls the exchange; choose tcp over links with loss."""

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.transactions is not None and self.duration_s is not None:
            raise ValueError("give transactions or duration, not both")
        return self

    @property
    def count(self) -> int:
        return self.transactions or 10

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"transactions": None, "duration_s": duration_s})


@dataclass(frozen=True)
class Transactions:
    """One run. Minimum, mean, maximum and deviation are exact. `histogram_p99_ms` comes from netperf's histogram, whose
    steps are a tenth of the value's power of ten (1 ms at 20 ms, 10 ms at 160 ms)."""

    median_ms: float
    min_ms: float
    mean_ms: float
    max_ms: float
    stdev_ms: float
    histogram_p99_ms: float
    transactions_per_s: float
    intervals: int
    """The number of interim results behind the median; with 0, it is the histogram's median."""


def argv(options: NetperfOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line."""
    # Eight bytes each way instead of one fill the same Ethernet frame, and make the interim results, printed with
    # two decimals in bytes per second, exact to some microseconds.
    length = f"{options.duration_s:g}" if options.duration_s else f"-{options.count}"
    interim = ("-f", "b", "-D", "-0.000001") if _exchanges(options, way.path) <= MOST_INTERIM_RESULTS else ()
    return (
        *client(way),
        *("-p", str(PORT)),
        *("-t", f"{options.protocol.upper()}_RR", "-l", length, "-P", "0", *interim),
        *("--", "-r", "8,8", "-k", SELECTORS),
    )


def _exchanges(options: NetperfOptions, path: Path) -> float:
    return options.duration_s / (max(path.rtt_ms, 0.1) / 1000) if options.duration_s else options.count


def seconds(options: NetperfOptions, path: Path) -> float:
    """How long it takes, in seconds."""
    rtt_s = path.rtt_ms / 1000
    return (options.duration_s or options.count * rtt_s) + 4 * rtt_s + START_S


def parse(stdout: str, stderr: str = "") -> Transactions:
    """netperf UDP_RR or TCP_RR: lines `MEAN_LATENCY=161902.00` (microseconds) and, with `-f b -D -0.000001`, for
    each exchange `NETPERF_INTERIM_RESULT[3]=98.72` (bytes both ways per second).

    netperf's own median comes from a histogram, too coarse for a sum of segments (164285 for 161.7 ms). Minimum,
    mean, maximum and deviation are exact. Each interim result gives one exchange's time and what netperf does
    between exchanges, most of it constant; so the median is the exact minimum plus the distance from the shortest
    interval to the median one. The first interval is left out, as it includes the start. Without interim results the
    histogram's median is used. Either is limited to mean ± deviation, where every median lies.
    Raises ParseError. Source: netperf 2.7 manual, section 4.1 (-D) and section 9 (omni output selectors).
    """
    printed = NetperfOutput(stdout, stderr, "MEAN_LATENCY")
    final = printed.number
    rates = [number(text, key) for key, text in printed.pairs if key == "NETPERF_INTERIM_RESULT"]
    low, mean, high, stdev = (final(f"{key}_LATENCY") / 1000 for key in ("MIN", "MEAN", "MAX", "STDDEV"))
    in_bits = "bits/s" in printed.text("NETPERF_UNITS")
    units = final("REQUEST_SIZE") + final("RESPONSE_SIZE") if in_bits else 1.0
    intervals_ms = [1000 * units / rate for rate in rates[1:] if rate > 0]
    middle = final("P50_LATENCY") / 1000
    if intervals_ms:
        middle = low + statistics.median(intervals_ms) - min(intervals_ms)
    return Transactions(
        median_ms=clamp(middle, max(low, mean - stdev), min(high, mean + stdev)),
        min_ms=low,
        mean_ms=mean,
        max_ms=high,
        stdev_ms=stdev,
        histogram_p99_ms=final("P99_LATENCY") / 1000,
        transactions_per_s=final("TRANSACTION_RATE"),
        intervals=len(intervals_ms),
    )


def read(stdout: str, stderr: str) -> Measured:
    """The value is the lowest RTT, which netperf gives to the microsecond. The median can only be estimated from
    interim results, and printing these adds to the time: over Swarm it lay up to 0.3 ms above the mean. The mean, which
    netperf reports itself, is a column of its own."""
    run = parse(stdout, stderr)
    extra = {MIN.name: run.min_ms, MEDIAN.name: run.median_ms, MEAN.name: run.mean_ms, MAX.name: run.max_ms}
    return Measured(run.min_ms, {**extra, P99.name: run.histogram_p99_ms, STDEV.name: run.stdev_ms})


TOOL = Tool(
    name="netperf-rr",
    usual_name="latency",
    value=value("RTT", "ms", quantity="latency", follows="delay"),
    columns=(MIN, MEDIAN, MEAN, P99, MAX, STDEV),
    package="netperf",
    options=NetperfOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    predicted=rtt_ms,
)

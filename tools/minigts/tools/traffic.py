"""Traffic as it is: flows of TCP that arrive by chance, with sizes from a distribution or a table, and how long each
takes. The program is ours (provision/traffic), since no packaged one does this: docs/decisions/flows.md."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from minigts import paths
from minigts.errors import InputError
from minigts.language import documents
from minigts.language.fields import matching, number, text_schema, truth, whole
from minigts.language.problems import quote
from minigts.language.quantities import OFFERED_MBIT, OFFERED_PERCENT, WINDOW_BYTES
from minigts.tools.base import SETUP_ROUND_TRIPS, START_S, Measured, ParseError, PathUnderTest, Service, Tool, complaint
from minigts.tools.columns import MAX, MEAN, MIN, P99, STDEV, VALUE, Column
from minigts.tools.iperf3_tcp import CONGESTION
from minigts.tools.iperf3_udp import offered_mbit
from minigts.tools.options import Duration, Options, either
from minigts.topology.plan import chance
from minigts.topology.plan.elements import Path

PORT = 5601
MOST_FLOWS = 20_000
"""The most flows of a sample, on average."""
MOST_ALONE = 12
"""The most flows that are sent alone."""
FEWEST_PATIENCE_S = 10.0
"""How long after the last arrival flows may take, at the least; otherwise as long as the arrivals do."""
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000
"""Flows up to the first size are small, and above the second large, as in pFabric (SIGCOMM 2013), section 5."""
SEGMENT = 1460
TABLES: Mapping[str, Sequence[tuple[float, float]]] = {
    "web-search": tuple(
        (packets * SEGMENT, share)
        for packets, share in (
            *((6, 0.15), (13, 0.2), (19, 0.3), (33, 0.4), (53, 0.53), (133, 0.6)),
            *((667, 0.7), (1333, 0.8), (3333, 0.9), (6667, 0.97), (20000, 1.0)),
        )
    ),
    "data-mining": (
        *((0, 0.0), (180, 0.1), (216, 0.2), (560, 0.3), (900, 0.4), (1100, 0.5), (1870, 0.6), (3160, 0.7)),
        *((10_000, 0.8), (400_000, 0.9), (3_160_000, 0.95), (100_000_000, 0.98), (1_000_000_000, 1.0)),
    ),
}
"""Bytes, and the share of flows that are not larger. web-search: Alizadeh and others, Data Center TCP, SIGCOMM 2010,
section 2.2, as pFabric's simulations have it (SIGCOMM 2013, section 5.1, figure 4a). data-mining: Greenberg and others,
VL2, SIGCOMM 2009, section 3.2, figure 2, as later simulations have read it from the figure."""
_DRAWN = re.compile(r"(exponential|pareto) (\S{1,20})", re.ASCII)
_OF_PERCENT = re.compile(r"(?:100|[0-9]{1,2}(?:\.[0-9]{1,6})?)%", re.ASCII)


def _sizes(given: object) -> str:
    if isinstance(given, str) and given in TABLES:
        return given
    found = _DRAWN.fullmatch(given) if isinstance(given, str) else None
    try:
        return f"{found[1]} {WINDOW_BYTES.normal(found[2])}" if found else WINDOW_BYTES.normal(given)
    except ValueError as error:
        words = f"{', '.join(TABLES)}, a size as in 20kB, exponential 20kB, or pareto 20kB"
        raise ValueError(f"{quote(given)} are no sizes of flows: write {words}") from error


def _load(given: object) -> str:
    return (OFFERED_PERCENT if isinstance(given, str) and given.endswith("%") else OFFERED_MBIT).normal(given)


def _point(given: object) -> tuple[str, str]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"{quote(given)} is no point of a table: write a size and a share, as in [10kB, 80%]")
    size, share = given
    if not isinstance(share, str) or not _OF_PERCENT.fullmatch(share):
        raise ValueError(f"{quote(share)} is no share from 0% to 100%")
    return WINDOW_BYTES.normal(size), share


_Point = Annotated[
    tuple[str, str],
    BeforeValidator(_point),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
]


Load = Annotated[str, BeforeValidator(_load), text_schema(either(OFFERED_MBIT, OFFERED_PERCENT), "50%", "20mbit")]


class TrafficOptions(Options):
    """Flows of TCP that arrive for `duration`, each in a connection of its own."""

    duration_s: Duration = Field(default=10.0, alias="duration")
    """For how long flows arrive; 10 s by default."""
    sizes: Annotated[str, BeforeValidator(_sizes), WithJsonSchema({"type": "string"})] = "web-search"
    """How large flows are: web-search, data-mining, 20kB, exponential 20kB, or pareto 20kB, with their mean."""
    table: Annotated[tuple[_Point, ...] | None, Field(min_length=1, max_length=100)] = None
    """Sizes by a table of your own in place of `sizes`: each size with the share of flows that are not larger."""
    shape: Annotated[float, *number("a shape")] = 1.5
    """The shape of `pareto`, above 1; the smaller it is, the more bytes are in few flows."""
    scale: Annotated[str, *matching("a share from 0% to 100%", _OF_PERCENT)] = "100%"
    """The factor of every size, so that flows of a fast network fit a slow one; 100% by default."""
    load: Load | None = None
    """The payload that arrives on average, or its share of the path's lowest rate; 50% by default."""
    every_s: Duration | None = Field(default=None, alias="every")
    """The mean time from one arrival to the next, in place of `load`."""
    arrivals: Literal["poisson", "steady", "on-off"] = "poisson"
    """poisson: by chance; steady: in equal gaps; on-off: by chance while on, with the same mean."""
    on_s: Duration = Field(default=1.0, alias="on")
    """How long a period of `on-off` is on, on average."""
    off_s: Duration = Field(default=1.0, alias="off")
    """How long a period of `on-off` is off, on average."""
    direction: Literal["send", "answer"] = "send"
    """send: `from` sends each flow to `to`; answer: `from` asks, and `to` answers with the flow."""
    congestion: CONGESTION | None = None
    """The congestion control of the host that sends the flows; by default its kernel's."""
    seed: Annotated[int, *whole("a seed", 0, 2**31)] = 1
    """The seed of arrivals and sizes, which are the same in each repetition and others in each replicate."""
    slowdown: Annotated[bool, *truth("some flows are first measured alone")] = True
    """Whether some flows are sent alone beforehand, to compare the others with them."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.load is not None and self.every_s is not None:
            raise ValueError("`load:` and `every:` are both given: one of them says how many flows arrive")
        if self.shape <= 1:
            raise ValueError(f"shape: {self.shape:g} has no mean: write a number above 1")
        if percent_of(self.scale) <= 0:
            raise ValueError("scale: flows of 0 % have no bytes")
        if self.table is not None:
            points = [(WINDOW_BYTES.parse(size), percent_of(share)) for size, share in self.table]
            rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(points))
            if not rising or points[-1][1] != 100:
                raise ValueError("table: sizes and shares rise, and the last share is 100%")
        return self

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})

    @property
    def may_vary(self) -> list[str]:
        return [key for key in super().may_vary if key not in ("table", "slowdown")]

    @property
    def points(self) -> list[tuple[float, float]]:
        """The table of sizes in bytes and cumulative shares from 0 to 1, scaled; empty without a table."""
        factor = percent_of(self.scale) / 100
        if self.table is not None:
            return [(WINDOW_BYTES.parse(size) * factor, percent_of(share) / 100) for size, share in self.table]
        return [(size * factor, share) for size, share in TABLES.get(self.sizes, ())]

    @property
    def distribution(self) -> tuple[str, float]:
        """The distribution's name and its mean in bytes, scaled, of sizes without a table."""
        name, _, size = self.sizes.rpartition(" ")
        return name or "fixed", WINDOW_BYTES.parse(size) * percent_of(self.scale) / 100

    @property
    def mean_bytes(self) -> float:
        """The mean of the sizes."""
        if not self.points:
            return self.distribution[1]
        size, share = self.points[0]
        mean = size * share
        for further, cumulative in self.points[1:]:
            mean += (cumulative - share) * (size + further) / 2
            size, share = further, cumulative
        return mean


def percent_of(text: str) -> float:
    return float(text.removesuffix("%"))


def gap_s(options: TrafficOptions, path: Path) -> float:
    """The mean time between arrivals. Raises InputError for a share of a rate that the path does not have."""
    if options.every_s is not None:
        return options.every_s
    return options.mean_bytes * 8 / (offered_mbit(options.load or "50%", path) * 1e6)


def _asked(options: TrafficOptions, way: PathUnderTest) -> dict[str, Any]:
    gap = gap_s(options, way.path)
    if options.duration_s / gap > MOST_FLOWS:
        raise InputError(
            f"{way.path.source} to {way.path.target}: some {options.duration_s / gap:,.0f} flows would arrive; at most "
            f"{MOST_FLOWS:,} are possible: take a smaller load, larger flows or a shorter duration"
        )
    distribution, mean = ("table", 0.0) if options.points else options.distribution
    return {
        **{"address": way.address, "port": PORT, "duration": options.duration_s, "gap": gap},
        **{
            "arrivals": options.arrivals,
            "on": options.on_s,
            "off": options.off_s,
            "seed": chance.traffic_seed(way.course, options.seed),
        },
        **{"table": options.points, "distribution": distribution, "mean": mean, "shape": options.shape},
        **{
            "direction": options.direction,
            "congestion": options.congestion or "",
            "alone": MOST_ALONE if options.slowdown else 0,
        },
        "patience": patience_s(options),
    }


def patience_s(options: TrafficOptions) -> float:
    """How long after the last arrival flows may still end, in seconds."""
    return max(FEWEST_PATIENCE_S, options.duration_s)


def program() -> str:
    """The text of the program that hosts run."""
    return (paths.project_root() / "provision" / "traffic" / "traffic.py").read_text(encoding="utf-8")


def argv(options: TrafficOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The client's command line. Raises InputError for too many flows, and for a share of a rate that is not there."""
    return ("python3", "-c", program(), "send", json.dumps(_asked(options, way)))


def serves(_options: TrafficOptions, _way: PathUnderTest) -> Service:
    """What answers at the other end."""
    return Service(("python3", "-c", program(), "serve", str(PORT)), PORT)


def seconds(options: TrafficOptions, path: Path) -> float:
    """How long it takes, in seconds, without flows that end late; with those that are sent alone."""
    alone_s = 0.0
    if options.slowdown:
        largest = max((size for size, _ in options.points), default=4 * options.mean_bytes)
        of_rate_s = 2 * largest * 8 / (path.rate_mbit * 1e6) if path.rate_mbit else 0.0
        alone_s = of_rate_s + 2 * MOST_ALONE * SETUP_ROUND_TRIPS * path.rtt_ms / 1000
    return options.duration_s + alone_s + SETUP_ROUND_TRIPS * path.rtt_ms / 1000 + START_S


def longest_s(options: TrafficOptions) -> float:
    """The longest that the client waits for flows."""
    return options.duration_s + patience_s(options)


class _Output(BaseModel):
    """What the program prints."""

    model_config = ConfigDict(extra="ignore")
    alone: list[tuple[Annotated[int, Field(ge=1, lt=2**53)], Annotated[FiniteFloat, Field(ge=0)]]] = []
    flows: list[
        tuple[
            Annotated[FiniteFloat, Field(ge=0)],
            Annotated[int, Field(ge=1, lt=2**53)],
            Annotated[FiniteFloat, Field(ge=0)] | None,
        ]
    ]


@dataclass(frozen=True)
class Flows:
    """Flows that ended: start and duration in seconds, and size in bytes; how many did not end; and those sent alone,
    by size."""

    ended: tuple[tuple[float, int, float], ...]
    unfinished: int
    alone: tuple[tuple[int, float], ...]

    def slowdowns(self) -> list[float]:
        """How many times as long each took as a flow of its size alone, between whose sizes straight lines are drawn
        on logarithmic axes; empty where none was sent alone."""
        alone = [(math.log(size), math.log(took)) for size, took in self.alone if took > 0]
        if not alone:
            return []
        return [took / math.exp(_between(alone, math.log(size))) for _, size, took in self.ended]


def _between(points: Sequence[tuple[float, float]], x: float) -> float:
    for (low, at_low), (high, at_high) in pairwise(points):
        if low <= x <= high:
            return at_low + (at_high - at_low) * ((x - low) / (high - low) if high > low else 0.0)
    return points[0][1] if x < points[0][0] else points[-1][1]


_BOUNDS = documents.Bounds(elements=1_000_000, bytes=64 << 20)


def parse(stdout: str, stderr: str = "") -> Flows:
    """`{"alone": [[1460, 0.0403]], "flows": [[0.0, 1460, 0.0411], [0.3, 90000, null]]}`. Raises ParseError, also where
    no flow ended."""
    if not stdout.strip():
        raise ParseError(f"traffic: {complaint(stderr) or 'printed nothing'}")
    try:
        output = _Output.model_validate(documents.document(stdout, _BOUNDS))
    except (documents.Unreadable, ValidationError) as error:
        raise ParseError("traffic: the output is not that of its program") from error
    ended = tuple((at_s, size, took) for at_s, size, took in output.flows if took is not None)
    if not ended:
        raise ParseError(f"traffic: of {len(output.flows)} flows that arrived none ended")
    return Flows(ended, len(output.flows) - len(ended), tuple(output.alone))


COMPLETION = tuple(replace(column, better="lower") for column in (MIN, MEAN, P99, MAX))
"""Of the completion times of a sample."""
FOLLOWS: tuple[Literal["delay", "rate", "loss"], ...] = ("delay", "rate", "loss")
COUNTED = Column("flows", "flows", "", follows=FOLLOWS)
UNFINISHED = Column("unfinished", "unfinished flows", "", follows=FOLLOWS)
RECEIVED = Column("received_mbit", "received", "Mbit/s", follows=FOLLOWS, tabled=True, better="higher")
SLOWDOWN = Column("slowdown", "slowdown", "", follows=FOLLOWS, panel=True, tabled=True, better="lower")
SLOWDOWN_P99 = Column("slowdown_p99", "slowdown, p99", "", follows=FOLLOWS, tabled=True, better="lower")
SMALL = Column("small_ms", "flows up to 100 kB", "ms", follows=FOLLOWS, tabled=True, better="lower")
SMALL_P99 = Column("small_p99_ms", "flows up to 100 kB, p99", "ms", follows=FOLLOWS, tabled=True, better="lower")
MEDIUM = Column("medium_ms", "flows up to 10 MB", "ms", follows=FOLLOWS, tabled=True, better="lower")
LARGE = Column("large_ms", "flows above 10 MB", "ms", follows=FOLLOWS, tabled=True, better="lower")


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many of the values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def read(stdout: str, stderr: str) -> Measured:
    """The value is the median completion time in ms."""
    run = parse(stdout, stderr)
    took_ms = [1000 * took for _, _, took in run.ended]
    last_s = max(at_s + took for at_s, _, took in run.ended)
    of_bytes = [(size, 1000 * took) for _, size, took in run.ended]
    small = [took for size, took in of_bytes if size <= SMALL_BYTES]
    medium = [took for size, took in of_bytes if SMALL_BYTES < size <= LARGE_BYTES]
    large = [took for size, took in of_bytes if size > LARGE_BYTES]
    slow = run.slowdowns()
    total_bytes = sum(size for size, _ in of_bytes)
    extra: dict[str, float | None] = {
        MIN.name: min(took_ms),
        MEAN.name: statistics.fmean(took_ms),
        P99.name: quantile(took_ms, 0.99),
        MAX.name: max(took_ms),
        STDEV.name: statistics.pstdev(took_ms),
        COUNTED.name: float(len(took_ms)),
        UNFINISHED.name: float(run.unfinished),
        RECEIVED.name: total_bytes * 8 / last_s / 1e6 if last_s else None,
        SLOWDOWN.name: statistics.median(slow) if slow else None,
        SLOWDOWN_P99.name: quantile(slow, 0.99) if slow else None,
        SMALL.name: statistics.median(small) if small else None,
        SMALL_P99.name: quantile(small, 0.99) if small else None,
        MEDIUM.name: statistics.median(medium) if medium else None,
        LARGE.name: statistics.median(large) if large else None,
    }
    known = {name: value for name, value in extra.items() if value is not None}
    return Measured(statistics.median(took_ms), known, payload_bytes=float(total_bytes))


def series(stdout: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Each flow's completion time in ms, by when it began."""
    return {VALUE: [(at_s, 1000 * took) for at_s, _, took in parse(stdout).ended]}


def _none(*_arguments: Any) -> None:
    """The plan predicts no completion time of flows that share a path."""


TOOL = Tool(
    name="traffic",
    usual_name="traffic",
    value=Column(VALUE, "completion time", "ms", quantity="value", follows=FOLLOWS, better="lower"),
    columns=(
        *(*COMPLETION, STDEV),
        *(COUNTED, UNFINISHED, RECEIVED, SLOWDOWN, SLOWDOWN_P99, SMALL, SMALL_P99, MEDIUM, LARGE),
    ),
    package="python3",
    options=TrafficOptions,
    argv=argv,
    seconds=seconds,
    read=read,
    series=series,
    predicted=_none,
    of_the_host=True,
    at_most_s=longest_s,
    serves=serves,
)

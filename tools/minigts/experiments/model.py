"""The experiment language: what an experiment's file may say.

Units are written out (`2s`, `90%`, `45mbit`, `1400B`). A model dumped by alias is the language again, so a
manifest holds an experiment that can be read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    model_validator,
)

from minigts.errors import InputError

SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(%|mbit|gbit|kbit)")
_BYTES = re.compile(r"(\d+)\s*B")


def seconds(text: object) -> float:
    """`2s` → 2.0, `10ms` → 0.01, `2min` → 120.0. Raises ValueError for anything else, a bare number too."""
    found = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"{text!r} is not a duration; write it with its unit, as in 10ms, 2s or 2min")
    value = float(found[1]) * SECONDS[found[2]]
    if not 0 < value <= 86400:
        raise ValueError(f"{text!r} is out of range; a duration lies between 0 and 24h")
    return value


def _written(value: float) -> str:
    return f"{value * 1000:.10g}ms" if value < 1 else f"{value:.10g}s"


def _whole_seconds(value: float) -> float:
    if value != int(value):
        raise ValueError(f"{value:g}s: iperf3 counts whole seconds")
    return value


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a name; use lower-case letters, digits and hyphens, a letter first")
    return text


def _rate(text: object) -> str:
    found = _RATE.fullmatch(text) if isinstance(text, str) else None
    if not found or float(found[1]) <= 0:
        raise ValueError(f"{text!r} is not a rate; write 45mbit, or 90% for a share of the path's own rate")
    return found[0]


def _datagram(text: object) -> str:
    if text == "fit":
        return "fit"
    found = _BYTES.fullmatch(text) if isinstance(text, str) else None
    if not found or not 16 <= int(found[1]) <= 65507:
        raise ValueError(f"{text!r} is not a datagram's size; write 1400B (16B to 65507B), or fit for the MTU")
    return found[0]


Name = Annotated[str, AfterValidator(_name)]
Duration = Annotated[float, BeforeValidator(seconds), PlainSerializer(_written, return_type=str)]
WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
Rate = Annotated[str, BeforeValidator(_rate)]
Datagram = Annotated[str, BeforeValidator(_datagram)]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class NetperfOptions(_Strict):
    """Exchange one byte for one byte, `transactions` times or for `duration`. Neither given: ten times."""

    transactions: Count | None = None
    duration_s: Duration | None = Field(default=None, alias="duration")
    protocol: Literal["udp", "tcp"] = "udp"
    """udp has no retransmission: one lost packet stalls the exchange. Choose tcp over links that lose."""

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.transactions is not None and self.duration_s is not None:
            raise ValueError("give transactions or duration, not both")
        return self

    @property
    def count(self) -> int:
        return self.transactions or 10

    def lasting(self, duration_s: float) -> NetperfOptions:
        return self.model_copy(update={"transactions": None, "duration_s": duration_s})


class PingOptions(_Strict):
    """`count` echo requests, one every `interval`."""

    count: Count = 10
    interval_s: Duration = Field(default=0.01, alias="interval")

    def lasting(self, duration_s: float) -> PingOptions:
        return self.model_copy(update={"count": max(1, round(duration_s / self.interval_s))})


class TcpOptions(_Strict):
    """One TCP stream for `duration`, after a first `omit` that is thrown away (slow start)."""

    duration_s: WholeSeconds = Field(default=2.0, alias="duration")
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    streams: Annotated[int, Field(strict=True, ge=1, le=128)] = 1

    def lasting(self, duration_s: float) -> TcpOptions:
        return self.model_copy(update={"duration_s": duration_s})


class UdpOptions(_Strict):
    """Datagrams of one size offered at a steady rate for `duration`."""

    duration_s: WholeSeconds = Field(default=1.0, alias="duration")
    rate: Rate = "90%"
    datagram: Datagram = "fit"

    def lasting(self, duration_s: float) -> UdpOptions:
        return self.model_copy(update={"duration_s": duration_s})


class Pair(_Strict):
    """One path, by its two hosts' names; what is sent is sent by `from`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")


def _path_kind(value: object) -> str:
    return "word" if isinstance(value, str) else "pair"


PathWord = Literal["first-to-each", "each-segment", "every-pair"]
Paths = Annotated[Annotated[PathWord, Tag("word")] | Annotated[Pair, Tag("pair")], Discriminator(_path_kind)]
"""Which paths: the first host to each other, each link, every pair once, or one pair by name."""


class _Measurement(_Strict):
    name: Name
    paths: Annotated[tuple[Paths, ...], Field(min_length=1)]


class NetperfRR(_Measurement):
    tool: Literal["netperf-rr"]
    options: NetperfOptions = NetperfOptions()


class Ping(_Measurement):
    tool: Literal["ping"]
    options: PingOptions = PingOptions()


class Iperf3Tcp(_Measurement):
    tool: Literal["iperf3-tcp"]
    options: TcpOptions = TcpOptions()


class Iperf3Udp(_Measurement):
    tool: Literal["iperf3-udp"]
    options: UdpOptions = UdpOptions()


AnyMeasurement = NetperfRR | Ping | Iperf3Tcp | Iperf3Udp
Measurement = Annotated[AnyMeasurement, Field(discriminator="tool")]


class Paper(_Strict):
    """What `--paper` changes: the study's own length and number of repetitions."""

    repetitions: Count
    duration_s: WholeSeconds = Field(alias="duration")


class Published(_Strict):
    """Values that the study printed, or a trend. `by_hops` begins at one hop, `by_segment` is in link order."""

    measurement: Name
    source: str
    unit: str = ""
    by_hops: tuple[float, ...] = ()
    by_segment: tuple[float, ...] = ()
    trend: str = ""


class Line(_Strict):
    """A value drawn across a figure, in the unit of the panel's axis; `y` names the panel, absent the first."""

    at: float
    text: str
    y: str | None = None


class Figure(_Strict):
    """One figure of a measurement. What is absent follows from what the measurement varies; docs/results.md."""

    of: Name
    title: str = ""
    x: str | None = None
    """A varied setting, or hops, path or overlay."""
    y: tuple[str, ...] = ()
    """Columns of samples.csv, a panel each."""
    relative_to: str | None = None
    """Each value as a share of what this overlay has at the same x; or a place of the x axis, of what is there."""
    lines: tuple[Line, ...] = ()


LatencyClaim = Literal["sum-of-segments", "as-declared"]
ThroughputClaim = Literal["within-ceiling", "falls-with-hops", "hardly-falls"]


class Claim(_Strict):
    """One claim, in the words that a topology's `expect:` uses too: exactly one of `latency` and `throughput`."""

    latency: LatencyClaim | None = None
    throughput: ThroughputClaim | None = None
    of: Name | None = None
    """The measurement it speaks of; every one of that quantity when absent."""
    overlay: str | None = None
    """The overlay it speaks of; each one when absent."""
    text: str = ""

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.latency is None) == (self.throughput is None):
            raise ValueError("a claim names exactly one of latency and throughput")
        return self

    @property
    def words(self) -> str:
        """The claim in one line, `latency: sum-of-segments`."""
        subject = f"latency: {self.latency}" if self.latency else f"throughput: {self.throughput}"
        return f"{subject} of {self.of}" if self.of else subject


class Experiment(_Strict):
    """One experiment. `topology` is a path as written, relative to where minigts runs or to the project."""

    name: Name
    title: str
    description: str = ""
    topology: str
    overlays: Annotated[tuple[Name, ...], Field(min_length=1)]
    seed: Annotated[int, Field(strict=True, ge=0)]
    repetitions: Count
    measurements: Annotated[tuple[Measurement, ...], Field(min_length=1)]
    claims: tuple[Claim, ...] = ()
    published: tuple[Published, ...] = ()
    figures: tuple[Figure, ...] = ()
    paper: Paper | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [measurement.name for measurement in self.measurements]
        _no_duplicates("measurements", names)
        _no_duplicates("overlays", self.overlays)
        named_by: dict[str, list[str | None]] = {
            "published": [entry.measurement for entry in self.published],
            "claims": [claim.of for claim in self.claims],
            "figures": [figure.of for figure in self.figures],
        }
        for kind, entries in named_by.items():
            for index, named in enumerate(entries):
                if named is not None and named not in names:
                    known = ", ".join(names)
                    raise ValueError(f"{kind}[{index}]: no measurement {named!r}; measurements are {known}")
        return self

    def measurement(self, name: str) -> AnyMeasurement:
        """The measurement called `name`. Raises KeyError."""
        for measurement in self.measurements:
            if measurement.name == name:
                return measurement
        raise KeyError(name)

    def for_paper(self) -> Experiment:
        """The same at the study's own length. Raises InputError when the file has no `paper:`."""
        if self.paper is None:
            raise InputError(f"experiment {self.name} has no `paper:` section, so --paper says nothing")
        duration_s = self.paper.duration_s
        longer = tuple(
            measurement.model_copy(update={"options": measurement.options.lasting(duration_s)})
            for measurement in self.measurements
        )
        return self.model_copy(update={"measurements": longer, "repetitions": self.paper.repetitions})

    def only(self, names: Iterable[str]) -> Experiment:
        """The part that `names` (overlays and measurements) select. Raises InputError for a name that is neither.

        Naming no overlay keeps all overlays, naming no measurement keeps all measurements.
        """
        wanted = set(names)
        measurements = tuple(entry for entry in self.measurements if entry.name in wanted) or self.measurements
        overlays = tuple(entry for entry in self.overlays if entry in wanted) or self.overlays
        known = {*self.overlays, *(entry.name for entry in self.measurements)}
        if wanted - known:
            listed = ", ".join(sorted(wanted - known))
            raise InputError(f"experiment {self.name} has no {listed}; it has {', '.join(sorted(known))}")
        kept = {entry.name for entry in measurements}
        return self.model_copy(
            update={
                "measurements": measurements,
                "overlays": overlays,
                "claims": tuple(claim for claim in self.claims if claim.of is None or claim.of in kept),
                "published": tuple(entry for entry in self.published if entry.measurement in kept),
                "figures": tuple(figure for figure in self.figures if figure.of in kept),
            }
        )

    def as_written(self) -> dict[str, Any]:
        """The experiment as its file would say it, as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _no_duplicates(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{kind}: {name!r} appears twice")
        seen.add(name)

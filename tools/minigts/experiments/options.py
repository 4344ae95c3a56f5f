"""What a measurement's `options:` may say, and the units they are written in.

Units are written out (`2s`, `90%`, `45mbit`, `1400B`). A model dumped by alias is the language again, so a
manifest holds an experiment that can be read back.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from minigts.language.fields import matching, whole, written
from minigts.language.problems import shown
from minigts.language.quantities import (
    DATAGRAM_BYTES,
    DATAGRAM_PACKETS,
    DURATION_S,
    LOAD_PERCENT,
    OFFERED_MBIT,
    OFFERED_PERCENT,
    WINDOW_BYTES,
    Quantity,
    is_whole_number,
    whole_number,
)

MOST_COUNTED = 100_000
_CONGESTION_HINT = "a congestion control: write it as in cubic or reno"
_CONGESTION = re.compile(r"[a-z]{2,15}", re.ASCII)
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)


def size_bytes(text: str) -> int:
    """`64KiB` → 65536. Raises ValueError."""
    return WINDOW_BYTES.parse_whole(text)


def datagram_bytes(datagram: str, mtu: int) -> int:
    """`1400B` → 1400; `fit` → what one packet of `mtu` bytes holds beside 28 bytes of IP and UDP headers; `3 packets`
    → what three hold: every fragment but the last carries a multiple of eight bytes (RFC 791)."""
    if datagram != "fit" and "packet" not in datagram:
        return DATAGRAM_BYTES.parse_whole(datagram)
    packets = 1 if datagram == "fit" else DATAGRAM_PACKETS.parse_whole(datagram)
    return (packets - 1) * ((mtu - 20) // 8 * 8) + (mtu - 20) - 8


def percent(text: str) -> float:
    """`40%` → 40.0."""
    return LOAD_PERCENT.parse(text)


def _written_duration(value: float) -> str:
    """As short as it is exact, so that reading it gives the same number."""
    exact = Decimal(repr(value))
    return f"{(exact * 1000).normalize():f}ms" if value < 1 else f"{exact.normalize():f}s"


def _whole_seconds(value: float) -> float:
    if value != int(value):
        raise ValueError(f"{value:g}s: iperf3 counts whole seconds")
    return value


def _seconds(value: object) -> float:
    return DURATION_S.parse(DURATION_S.normal(value))


def _rate(value: object) -> str:
    return (OFFERED_PERCENT if isinstance(value, str) and value.endswith("%") else OFFERED_MBIT).normal(value)


def _datagram(value: object) -> str:
    if value == "fit":
        return "fit"
    return (DATAGRAM_PACKETS if isinstance(value, str) and "packet" in value else DATAGRAM_BYTES).normal(value)


def varied(value: object) -> str | int:
    """One of the values that an option takes in turn: a whole number, or text. Raises ValueError for anything else."""
    if isinstance(value, str):
        return whole_number(value, "a value", -(10**15), 10**15) if is_whole_number(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} where a value is wanted, as in 1400B or 9")


def word(value: object) -> str:
    """A value as it stands in tables and in names of samples, `3 packets` as `3packets`. Raises ValueError."""
    return "".join(str(varied(value)).split())


SCALAR = WithJsonSchema({"type": ["string", "integer"]})


def _form(*kinds: Quantity) -> str:
    return "|".join(kind.pattern for kind in kinds)


Name = Annotated[str, *matching("a name: lower-case letters, digits and hyphens, a letter first, at most 40", NAME)]
Duration = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(_written_duration, return_type=str),
    written(DURATION_S.pattern, "10ms", "2s", "2min"),
]
WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
Rate = Annotated[str, BeforeValidator(_rate), written(_form(OFFERED_MBIT, OFFERED_PERCENT), "45mbit", "90%")]
Datagram = Annotated[
    str,
    BeforeValidator(_datagram),
    written("^fit$|" + _form(DATAGRAM_BYTES, DATAGRAM_PACKETS), "1400B", "fit", "3packets"),
]
Size = Annotated[str, BeforeValidator(WINDOW_BYTES.normal), written(WINDOW_BYTES.pattern, "64KiB")]
Share = Annotated[str, BeforeValidator(LOAD_PERCENT.normal), written(LOAD_PERCENT.pattern, "40%")]
Count = Annotated[int, *whole("a count", 1, MOST_COUNTED)]
Switch = Literal["on", "off"]


class Strict(BaseModel):
    """The base of all parts of the language: frozen, and every key is known."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, use_attribute_docstrings=True)


class NetperfOptions(Strict):
    """Exchange one byte for one byte, `transactions` times or for `duration`. Neither given: ten times."""

    transactions: Count | None = None
    """So many exchanges. Not together with duration."""
    duration_s: Duration | None = Field(default=None, alias="duration")
    """As many exchanges as this time allows."""
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


class PingOptions(Strict):
    """`count` echo requests, one every `interval`."""

    count: Count = 10
    """How many echo requests."""
    interval_s: Duration = Field(default=0.01, alias="interval")
    """From one to the next."""

    def lasting(self, duration_s: float) -> PingOptions:
        """Raises ValueError when that is more than can be counted."""
        count = max(1, round(duration_s / self.interval_s))
        if count > MOST_COUNTED:
            raise ValueError(
                f"{count:,} echo requests, one every {_written_duration(self.interval_s)}, in "
                f"{_written_duration(duration_s)}; at most {MOST_COUNTED:,} are possible"
            )
        return self.model_copy(update={"count": count})


class _Flow(Strict):
    """What may be set around a flow of TCP or UDP."""

    offload: Switch | None = None
    """Switch the interface's segmentation and fragmentation offloads at both ends, and read them back. Absent: leave
    them as they are."""
    stress: Share = "0%"
    """For how much of the measuring time stress-ng takes a processor of both hosts."""


class TcpOptions(_Flow):
    """One TCP stream for `duration`, after a first `omit` that is thrown away (slow start)."""

    duration_s: WholeSeconds = Field(default=2.0, alias="duration")
    """How long it counts, in whole seconds."""
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    """So much before it that does not count, in whole seconds."""
    streams: Annotated[int, *whole("a number of streams", 1, 128)] = 1
    """So many streams at once."""
    window: Size | None = None
    """Both sockets' buffers, which bound the window; absent: the kernel tunes them by itself."""
    congestion: Annotated[str, *matching(_CONGESTION_HINT, _CONGESTION)] | None = None
    """The sender's congestion control: reno, cubic, bbr, …; absent: the kernel's own choice, cubic."""

    def lasting(self, duration_s: float) -> TcpOptions:
        return self.model_copy(update={"duration_s": duration_s})


class UdpOptions(_Flow):
    """Datagrams of one size offered at a steady rate for `duration`."""

    duration_s: WholeSeconds = Field(default=1.0, alias="duration")
    """In whole seconds."""
    rate: Rate = "90%"
    """What is offered, or its share of the path's lowest rate."""
    datagram: Datagram = "fit"
    """Its payload; fit: one packet; 3packets: as much as three hold."""
    sessions: Annotated[int, *whole("a number of sessions", 1, 64)] | None = None
    """Send from so many hosts at once, each its own stream of this rate; the path's first host and those after it."""

    def lasting(self, duration_s: float) -> UdpOptions:
        return self.model_copy(update={"duration_s": duration_s})


class Links(Strict):
    """How all links of the lab are set while a measurement runs, where it differs from the topology."""

    gro: Switch = "off"
    """Generic receive offload on the links' interfaces; minigts has it off."""
    queue: Size | None = None
    """The queue in front of each link's rate."""
    rate: Literal["unlimited"] | None = None
    """unlimited: no rate on any link."""


class Ends(Strict):
    """Where a measurement's client and server are, on its two hosts."""

    client: Literal["container", "host", "second"] = Field(default="container", alias="from")
    """container: where the overlay is measured from; host: the plain host; second: one more container beside it."""
    server: Literal["container", "host", "own"] = Field(default="container", alias="to")
    """container: as the overlay is reached from elsewhere; host: the plain host; own: the container's own address,
    where that is another one (Docker's bridge with published ports)."""

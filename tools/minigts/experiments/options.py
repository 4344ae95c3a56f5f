"""What a measurement's `options:` may say, and the units they are written in.

Units are written out (`2s`, `90%`, `45mbit`, `1400B`). A model dumped by alias is the language again, so a
manifest holds an experiment that can be read back.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {"B": 1, "kB": 1000, "MB": 1000_000, "KiB": 1024, "MiB": 1024 * 1024}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(%|mbit|gbit|kbit)")
_SIZE = re.compile(r"(\d+)\s*(B|kB|MB|KiB|MiB)")
_PACKETS = re.compile(r"(\d+)\s*packets?")
_SHARE = re.compile(r"(\d+)\s*%")


def seconds(text: object) -> float:
    """`2s` → 2.0, `10ms` → 0.01, `2min` → 120.0. Raises ValueError for anything else, a bare number too."""
    found = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"{text!r} is not a duration; write it with its unit, as in 10ms, 2s or 2min")
    value = float(found[1]) * SECONDS[found[2]]
    if not 0 < value <= 86400:
        raise ValueError(f"{text!r} is out of range; a duration lies between 0 and 24h")
    return value


def size_bytes(text: str) -> int:
    """`64KiB` → 65536. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if not found or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a size; write it with its unit, as in 64KiB or 30kB")
    return int(found[1]) * BYTES[found[2]]


def datagram_bytes(datagram: str, mtu: int) -> int:
    """`1400B` → 1400; `fit` → what one packet of `mtu` bytes holds beside 28 bytes of IP and UDP headers; `3 packets`
    → what three hold: every fragment but the last carries a multiple of eight bytes (RFC 791)."""
    packets = 1 if datagram == "fit" else _counted(datagram)
    if packets is None:
        return int(datagram.removesuffix("B").strip())
    return (packets - 1) * ((mtu - 20) // 8 * 8) + (mtu - 20) - 8


def _counted(datagram: str) -> int | None:
    found = _PACKETS.fullmatch(datagram)
    return int(found[1]) if found else None


def percent(text: str) -> float:
    """`40%` → 40.0."""
    return float(text.removesuffix("%").strip())


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
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a datagram's size; write 1400B, fit for the MTU, or 3packets")
    packets, found = _counted(text), re.fullmatch(r"(\d+)\s*B", text)
    if text == "fit" or (packets is not None and 1 <= packets <= 44):
        return text
    if not found or not 16 <= int(found[1]) <= 65507:
        raise ValueError(f"{text!r} is not a datagram's size; write 1400B (16B to 65507B), fit, or 3packets")
    return text


def _size(text: object) -> str:
    size_bytes(text if isinstance(text, str) else repr(text))
    return str(text)


def _share(text: object) -> str:
    found = _SHARE.fullmatch(text) if isinstance(text, str) else None
    if not found or int(found[1]) > 100:
        raise ValueError(f"{text!r} is not a share; write 0% to 100%")
    return found[0]


Name = Annotated[str, AfterValidator(_name)]
Duration = Annotated[float, BeforeValidator(seconds), PlainSerializer(_written, return_type=str)]
WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
Rate = Annotated[str, BeforeValidator(_rate)]
Datagram = Annotated[str, BeforeValidator(_datagram)]
Size = Annotated[str, BeforeValidator(_size)]
Share = Annotated[str, BeforeValidator(_share)]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]
Switch = Literal["on", "off"]


class Strict(BaseModel):
    """The base of all parts of the language: frozen, and every key is known."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class NetperfOptions(Strict):
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


class PingOptions(Strict):
    """`count` echo requests, one every `interval`."""

    count: Count = 10
    interval_s: Duration = Field(default=0.01, alias="interval")

    def lasting(self, duration_s: float) -> PingOptions:
        return self.model_copy(update={"count": max(1, round(duration_s / self.interval_s))})


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
    omit_s: WholeSeconds | None = Field(default=None, alias="omit")
    streams: Annotated[int, Field(strict=True, ge=1, le=128)] = 1
    window: Size | None = None
    """Both sockets' buffers, which bound the window; absent: the kernel tunes them by itself."""
    congestion: Annotated[str, Field(pattern=r"^[a-z]{2,15}$")] | None = None
    """The sender's congestion control: reno, cubic, bbr, …; absent: the kernel's own choice, cubic."""

    def lasting(self, duration_s: float) -> TcpOptions:
        return self.model_copy(update={"duration_s": duration_s})


class UdpOptions(_Flow):
    """Datagrams of one size offered at a steady rate for `duration`."""

    duration_s: WholeSeconds = Field(default=1.0, alias="duration")
    rate: Rate = "90%"
    datagram: Datagram = "fit"
    sessions: Annotated[int, Field(strict=True, ge=1, le=64)] | None = None
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


class Ends(Strict):
    """Where a measurement's client and server are, on its two hosts."""

    client: Literal["container", "host", "second"] = Field(default="container", alias="from")
    """container: where the overlay is measured from; host: the plain host; second: one more container beside it."""
    server: Literal["container", "host", "own"] = Field(default="container", alias="to")
    """container: as the overlay is reached from elsewhere; host: the plain host; own: the container's own address,
    where that is another one (Docker's bridge with published ports)."""

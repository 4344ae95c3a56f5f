"""What a name, an address or an amount may be: the patterns of topology files and their plans, and a plan's types.

The words of a file's `expect:` stand here, too, which an experiment's `claims:` share; minigts.judge says what each
means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field

from minigts.foreign import UNPRINTABLE
from minigts.formats import limits
from minigts.formats.limits import LONGEST_NOTE
from minigts.language import interface_names
from minigts.language.blocks import MAC
from minigts.language.problems import quote
from minigts.language.quantities import (
    BURST_PACKETS,
    BYTE_NS,
    CALL_NS,
    FRAME_NS,
    LOSS_PERCENT,
    MEMORY_MB,
    PACKET_BYTES,
    QUEUE_MS,
    QUEUE_PACKETS,
    RATE_MBIT,
    SIZE_BYTES,
    TIME_MS,
    Quantity,
)
from minigts.topology.frames import VLANS

LatencyWord = Literal["sum-of-segments", "as-declared", "steady"]
Distribution = Literal["uniform", "normal", "pareto", "paretonormal", "table"]
"""How a link's delay varies; a wire has them by their numbers, from 0."""
JitterOrder = Literal["kept", "free"]
Excess = Literal["queue", "drop"]
"""What becomes of the packets beyond a link's rate and its credit."""
ThroughputWord = Literal["within-ceiling", "falls-with-hops", "step-after-first-hop", "falls-slightly", "level"]
Hashed = Literal["layer3", "layer4"]
"""What of a packet its hash is made of, where hosts send over several ways."""
EXPECTATIONS: Mapping[str, tuple[str, ...]] = {
    "latency": get_args(LatencyWord),
    "throughput": get_args(ThroughputWord),
}
"""The words by quantity."""


MOST_HOSTS = limits.MOST_HOSTS
"""The most hosts and switches together."""
MOST_LINKS = 65_536
"""The number of links for which MACs are unique (`addressing.mac`)."""
LONGEST_LOCATION, LONGEST_DESCRIPTION = 60, 4000
LEAST_MTU, MOST_MTU = 576, 9500
MOST_CPUS = 64
LEAST_SHARE = 0.05
"""The least share of a processor to which a host may be limited."""
LARGEST_SEED = 2**31 - 1
"""The largest seed of a topology file."""
SMALLEST_SEGMENT = 30
"""The longest prefix that leaves two addresses."""

HOST_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,13}[a-z0-9])?", re.ASCII)
HOST_NAME_HINT = "a host name: at most 15 lower-case letters, digits, hyphens; a letter first, no hyphen last"
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
NAME_HINT = "a name: at most 40 lower-case letters, digits and hyphens, no hyphen first or last"
_INTERFACE = interface_names.PORT
_ON_SEGMENT = re.compile(rf"{_INTERFACE.pattern}(?:\.[1-9][0-9]{{0,3}})?", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def unprintable(text: str, *, one_line: bool = False) -> str | None:
    """The first character of `text` that would change a terminal, or that no file can hold; None when there is none."""
    found = UNPRINTABLE.search(text) or (re.search(r"[\n\t]", text) if one_line else None)
    return found[0] if found else None


def _held_to(pattern: re.Pattern[str], hint: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"{quote(value)} is not {hint}")
        return value

    return AfterValidator(check)


def _canonical(kind: Callable[[str], object], hint: str) -> Callable[[str], str]:
    """A check for text in canonical form by `kind`. It is cached, since a plan repeats each address many times, and
    the largest has some ten thousand."""

    @lru_cache(maxsize=1 << 16)
    def check(value: str) -> str:
        try:
            same = len(value) <= len("255.255.255.255/32") and str(kind(value)) == value
        except ValueError:
            same = False
        if not same:
            raise ValueError(f"{quote(value)} is not {hint}")
        return value

    return check


def _altname(value: str) -> str:
    if (why := interface_names.why_not(value)) is not None:
        raise ValueError(f"{quote(value)} names no end of a link: {why}")
    return value


def _printable(*, one_line: bool) -> AfterValidator:
    def check(value: str) -> str:
        if (bad := unprintable(value, one_line=one_line)) is not None:
            raise ValueError(f"holds the control character U+{ord(bad):04X}; write text that can be shown")
        return value

    return AfterValidator(check)


_address = _canonical(IPv4Address, "an IPv4 address, as in 10.20.0.1")


def _controller(value: str) -> str:
    address, _, port = value.partition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError(f"{quote(value)} is not where a controller listens: ADDRESS:PORT, as in 192.0.2.1:6653")
    return f"{_address(address)}:{port}"


def _expectation(entry: dict[str, str]) -> dict[str, str]:
    for quantity, word in entry.items():
        if len(entry) == 1 and word in EXPECTATIONS.get(quantity, ()):
            return entry
    raise ValueError("an expectation is one of its words, as in {latency: sum-of-segments}")


def _limits(kind: Quantity) -> tuple[float, float]:
    return kind.parse(kind.least), kind.parse(kind.most)


_LONGEST_MS = _limits(TIME_MS)[1]
_LEAST_MBIT, MOST_MBIT = _limits(RATE_MBIT)
_LEAST_MB, _MOST_MB = _limits(MEMORY_MB)

HostName: TypeAlias = Annotated[str, _held_to(HOST_NAME, HOST_NAME_HINT)]
Name: TypeAlias = Annotated[str, _held_to(NAME, NAME_HINT)]
Interface: TypeAlias = Annotated[str, _held_to(_INTERFACE, "a link's interface: eth1, eth2, …")]
OnSegment: TypeAlias = Annotated[str, _held_to(_ON_SEGMENT, "an interface on a segment: eth1, or of a VLAN eth1.10")]
AltName: TypeAlias = Annotated[str, AfterValidator(_altname)]
Mac: TypeAlias = Annotated[str, _held_to(MAC, "one machine's MAC address, as in 02:6d:67:00:00:01")]
Address: TypeAlias = Annotated[str, AfterValidator(_address)]
Network: TypeAlias = Annotated[str, AfterValidator(_canonical(IPv4Network, "an IPv4 network, as in 10.20.0.0/24"))]
Controller: TypeAlias = Annotated[str, AfterValidator(_controller)]
Expectation: TypeAlias = Annotated[dict[str, str], AfterValidator(_expectation)]
Location: TypeAlias = Annotated[str, Field(max_length=LONGEST_LOCATION), _printable(one_line=True)]
Description: TypeAlias = Annotated[str, Field(max_length=LONGEST_DESCRIPTION), _printable(one_line=False)]

Note: TypeAlias = Annotated[str, Field(max_length=LONGEST_NOTE), _printable(one_line=True)]

Index: TypeAlias = Annotated[int, Field(ge=0, lt=MOST_LINKS)]
VlanNumber: TypeAlias = Annotated[int, Field(ge=VLANS[0], le=VLANS[-1])]
Prefix: TypeAlias = Annotated[int, Field(ge=1, le=SMALLEST_SEGMENT)]
Mtu: TypeAlias = Annotated[int, Field(ge=LEAST_MTU, le=MOST_MTU)]
Cpus: TypeAlias = Annotated[int, Field(ge=1, le=MOST_CPUS)]
CpuShare: TypeAlias = Annotated[float, Field(ge=LEAST_SHARE, lt=1, allow_inf_nan=False)]
MemoryMb: TypeAlias = Annotated[int, Field(ge=int(_LEAST_MB), le=int(_MOST_MB))]
FrameNs: TypeAlias = Annotated[int, Field(ge=0, le=int(_limits(FRAME_NS)[1]))]
CallNs: TypeAlias = Annotated[int, Field(ge=0, le=int(_limits(CALL_NS)[1]))]
ByteNs: TypeAlias = Annotated[float, Field(ge=0, le=_limits(BYTE_NS)[1], allow_inf_nan=False)]
OneWayMs: TypeAlias = Annotated[float, Field(ge=0, le=_LONGEST_MS, allow_inf_nan=False)]
RttMs: TypeAlias = Annotated[float, Field(ge=0, le=2 * _LONGEST_MS, allow_inf_nan=False)]
PathRttMs: TypeAlias = Annotated[float, Field(ge=0, le=2 * _LONGEST_MS * MOST_HOSTS, allow_inf_nan=False)]
PathDelayMs: TypeAlias = Annotated[float, Field(ge=0, le=_LONGEST_MS * MOST_HOSTS, allow_inf_nan=False)]
BurstPackets: TypeAlias = Annotated[float, Field(ge=0, le=_limits(BURST_PACKETS)[1], allow_inf_nan=False)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=_limits(LOSS_PERCENT)[1], allow_inf_nan=False)]
RateMbit: TypeAlias = Annotated[float, Field(ge=_LEAST_MBIT, le=MOST_MBIT, allow_inf_nan=False)]
GoodputMbit: TypeAlias = Annotated[float, Field(ge=0, le=MOST_MBIT, allow_inf_nan=False)]
QueueBytes: TypeAlias = Annotated[int, Field(ge=1, le=2**40)]
"""The queue derived from the highest rate and the longest delay stays below the bound."""
QueuePackets: TypeAlias = Annotated[int, Field(ge=1, le=int(_limits(QUEUE_PACKETS)[1]))]
QueueMs: TypeAlias = Annotated[float, Field(gt=0, le=_limits(QUEUE_MS)[1], allow_inf_nan=False)]
CreditBytes: TypeAlias = Annotated[int, Field(ge=0, le=int(_limits(SIZE_BYTES)[1]))]
HoleBytes: TypeAlias = Annotated[int, Field(ge=int(_limits(PACKET_BYTES)[0]), le=int(_limits(PACKET_BYTES)[1]))]
Packets: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
OwnSeed: TypeAlias = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
"""The seed of a topology."""
Seed: TypeAlias = Annotated[int, Field(ge=0, lt=2**32)]
"""A seed of netem."""

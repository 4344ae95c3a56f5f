"""Quantities as they are written in a file: a number and its unit, `21.75ms`, `50mbit`, `0.1%`, `512MB`.

A number without its unit is refused, since that is where emulators' users go wrong most often (is `delay: 10` in
microseconds, milliseconds, one way?). Every parser raises `ValueError` with a sentence that shows how to write it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from minigts.language.problems import did_you_mean, quote

_LONGEST = 40
_WHOLE = re.compile(r"[+-]?(?:[0-9][0-9_]*|0x[0-9a-fA-F]+|0o[0-7]+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
LARGEST_NUMBER = 1e15
"""The largest number without a unit. Whatever is counted, measured or drawn is smaller."""
LONGEST_PATH = 400
_WRITTEN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)) ?([A-Za-zµ%]*)", re.ASCII)


@dataclass(frozen=True)
class Quantity:
    """One kind of quantity. `factors` turn a written unit into the unit that the plan counts in.

    `least` and `most` are written quantities themselves, so that messages can show them.
    """

    what: str
    example: str
    factors: Mapping[str, Decimal]
    least: str
    most: str
    any_case: bool = True
    integral: bool = False
    """Whether a fraction of the plan's unit is refused."""

    def parse(self, value: object) -> float:
        """The number in the plan's unit. Raises ValueError for no or an unknown unit, out of range, and no number."""
        exact = self._convert(value)
        if not self._convert(self.least) <= exact <= self._convert(self.most):
            raise ValueError(f"{quote(value)} is out of range: {self.what} is from {self.least} to {self.most}")
        if self.integral and exact % 1:
            raise ValueError(f"{quote(value)} is no whole number: write {self.what} as in {self.example}")
        return float(exact)

    def normal(self, value: object) -> str:
        """The quantity as it is written, without needless space. Raises ValueError as `parse` does."""
        text = " ".join(value.split()) if isinstance(value, str) and len(value) <= _LONGEST else value
        self.parse(text)
        return str(text)

    def parse_whole(self, value: object) -> int:
        """As `parse`, for what is counted in whole units; a fraction of one is rounded."""
        return round(self.parse(value))

    def _convert(self, value: object) -> Decimal:
        number, unit = _number_and_unit(value, self.what, self.example)
        factor = self.factor_of(unit)
        if factor is None:
            known = ", ".join(self.factors)
            raise ValueError(f"{quote(value)} has an unknown unit {unit!r}: {self.what} is written in {known}")
        return Decimal(number) * factor

    def factor_of(self, unit: str) -> Decimal | None:
        """What a written unit is in the plan's unit; None for a unit of another quantity."""
        return self.factors.get(unit.lower() if self.any_case else unit)

    @property
    def pattern(self) -> str:
        """A regular expression for the JSON Schema: what an editor accepts."""
        units = "|".join(sorted(self.factors, key=len, reverse=True))
        return rf"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+) ?({units})$"

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such a value."""
        return {"type": "string", "pattern": self.pattern, "examples": [self.example]}


def _number_and_unit(value: object, what: str, example: str) -> tuple[str, str]:
    """The two parts of a written quantity. Raises ValueError."""
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    if written is None:
        raise ValueError(f"{quote(value)} is not {what}: write it as in {example}")
    number, unit = written.groups()
    if not unit:
        raise ValueError(f"{quote(value)} lacks its unit: write {what} as in {example}")
    return number, unit


def whole_number(value: object, what: str, least: int, most: int) -> int:
    """`9`, `0x10`, `2_000`, or the number itself. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and len(value) <= _LONGEST and _WHOLE.fullmatch(value):
        plain = value.replace("_", "")
        number = int(plain, 0 if "x" in plain or "o" in plain else 10)
    else:
        raise ValueError(f"{quote(value)} is not {what}: write a whole number from {least} to {most}")
    if not least <= number <= most:
        raise ValueError(f"{quote(value)} is out of range: {what} is from {least} to {most}")
    return number


def is_whole_number(value: str) -> bool:
    """Whether `whole_number` reads it, whatever the range."""
    return len(value) <= _LONGEST and _WHOLE.fullmatch(value) is not None


def plain_number(value: object, what: str) -> float:
    """A number without a unit: `21.75`, `-3`, `1e6`, or the number itself. Raises ValueError."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= LARGEST_NUMBER else math.inf
    elif isinstance(value, str) and len(value) <= _LONGEST and _NUMBER.fullmatch(value):
        number = float(value.replace("_", ""))
    elif isinstance(value, str) and is_whole_number(value):
        number = float(whole_number(value, what, -(10**15), 10**15))
    if math.isnan(number):
        raise ValueError(f"{quote(value)} is not {what}: write a number, as in 21.75")
    if abs(number) > LARGEST_NUMBER:
        raise ValueError(f"{quote(value)} is out of range: {what} is at most {LARGEST_NUMBER:g}")
    return number


def magnitude(word: str) -> float:
    """The sort key of written quantities of one kind: `1400B` → 1400.0, `3gbit` → 3e9, `40%` → 40.0, `9` → 9.0. Text
    that is no quantity has infinity."""
    written = _WRITTEN.fullmatch(word) if len(word) <= _LONGEST else None
    factor = _MAGNITUDES.get(written[2]) if written else None
    return float(Decimal(written[1]) * factor) if written and factor is not None else math.inf


def _factors(**units: str) -> dict[str, Decimal]:
    return {unit: Decimal(factor) for unit, factor in units.items()}


TIME_MS = Quantity("a time", "10ms", _factors(us="0.001", ms="1", s="1000"), "0ms", "10s")
"""A time, parsed to milliseconds."""

FRAME_NS = Quantity("a time per frame", "20us", _factors(ns="1", us="1000", ms="1000000"), "0ns", "10ms", integral=True)
"""The time that a processor takes for a frame, parsed to nanoseconds."""

CALL_NS = Quantity("a time per call", "2us", _factors(ns="1", us="1000", ms="1000000"), "0ns", "1ms", integral=True)
"""The time that a system call takes, parsed to nanoseconds."""

BYTE_NS = Quantity("a time per byte", "2ns", _factors(ns="1", us="1000"), "0ns", "10us")
"""A time for each byte, parsed to nanoseconds. A fraction is allowed, since a frame has many bytes."""

RATE_MBIT = Quantity(
    "a rate", "100mbit", _factors(bit="0.000001", kbit="0.001", mbit="1", gbit="1000"), "8kbit", "100gbit"
)
"""A rate, parsed to 10^6 bits a second."""

BURST_PACKETS = Quantity(
    "a mean length of bursts", "8packets", _factors(packet="1", packets="1"), "1packet", "100000packets", any_case=False
)

LOSS_PERCENT = Quantity("a loss", "0.1%", {"%": Decimal(1)}, "0%", "100%")

SHARE_PERCENT = Quantity("a share", "2%", {"%": Decimal(1)}, "0%", "100%")

CLOCK_PERCENT = Quantity("a part of a clock's rate", "1%", {"%": Decimal(1)}, "0.001%", "10%")
"""Linux changes a clock's rate by a tenth at most (`adjtimex`)."""

WAIT_MS = Quantity("a time", "10ms", TIME_MS.factors, "1us", "1s")
"""How long a program has to wait for the processor, parsed to milliseconds."""

# Only this spelling: `kb` could be kilobits, and tc reads `kbps` as kilobytes.
SIZE_BYTES = Quantity(
    "a size",
    "100kB",
    _factors(B="1", kB="1000", KiB="1024", MB="1000000", MiB="1048576"),
    "1kB",
    "1000MB",
    any_case=False,
)

QUEUE_PACKETS = Quantity(
    "a number of packets",
    "100packets",
    _factors(packet="1", packets="1"),
    "1packet",
    "100000packets",
    any_case=False,
    integral=True,
)
"""How many packets wait, whatever their size."""

BFD_MS = Quantity("an interval", "100ms", TIME_MS.factors, "10ms", "10s", integral=True)
"""The time between two packets of Bidirectional Forwarding Detection, parsed to milliseconds."""

QUEUE_MS = Quantity("a time", "50ms", TIME_MS.factors, "1us", "10s")
"""How long the last of what waits has to wait, parsed to milliseconds."""

PACKET_BYTES = Quantity("a packet's size", "1400B", _factors(B="1"), "68B", "9500B", any_case=False, integral=True)
"""The size of an IP packet."""

# As in the kernel's `mem=`, in QEMU and in Docker: a host's megabyte of memory is 2^20 bytes, however it is spelt.
MEMORY_MB = Quantity(
    "a size of memory",
    "512MB",
    _factors(MB="1", MiB="1", GB="1024", GiB="1024"),
    "128MB",
    "1024GB",
    any_case=False,
)
"""A size of memory, parsed to units of 2^20 bytes."""

FILE_MB = Quantity("a size of a file", "100MB", MEMORY_MB.factors, "1MB", "1024GB", any_case=False)
"""A size of a file, parsed to units of 2^20 bytes."""

DURATION_S = Quantity(
    "a duration",
    "10ms, 2s or 2min",
    _factors(us="0.000001", ms="0.001", s="1", min="60", h="3600"),
    "1us",
    "24h",
    any_case=False,
)
"""A duration, parsed to seconds."""

MOMENT_S = Quantity("a moment", "10s", DURATION_S.factors, "0s", "24h", any_case=False)
"""A moment, parsed to seconds from a beginning; 0s is allowed."""

OFFERED_MBIT = Quantity(
    "a rate",
    "45mbit, or 90% for a share of the path's own rate",
    _factors(bit="0.000001", kbit="0.001", mbit="1", gbit="1000"),
    "1bit",
    "1000gbit",
    any_case=False,
)
"""The rate that a sender offers, in 10^6 bits a second. It may exceed a link's rate, to overload it."""

OFFERED_PERCENT = Quantity("a share of the path's rate", "90%", {"%": Decimal(1)}, "0.001%", "10000%")

WINDOW_BYTES = Quantity("a size", "64KiB or 30kB", SIZE_BYTES.factors, "1B", "2000MB", any_case=False, integral=True)
"""The size of a socket's buffer or a queue, in bytes."""

DATAGRAM_BYTES = Quantity(
    "a datagram's size", "1400B, fit or 3packets", {"B": Decimal(1)}, "16B", "65507B", any_case=False, integral=True
)

DATAGRAM_PACKETS = Quantity(
    "a number of packets",
    "3packets",
    _factors(packet="1", packets="1"),
    "1packet",
    "44packets",
    any_case=False,
    integral=True,
)
"""44 full packets are as much as one datagram of IPv4 holds, at an MTU of 1500."""

LOAD_PERCENT = Quantity("a share", "40%", {"%": Decimal(1)}, "0%", "100%", integral=True)

_MAGNITUDES: Mapping[str, Decimal] = {
    **DURATION_S.factors,
    **SIZE_BYTES.factors,
    **{unit: factor * 1_000_000 for unit, factor in OFFERED_MBIT.factors.items()},
    **DATAGRAM_PACKETS.factors,
    "%": Decimal(1),
    "": Decimal(1),
}


@dataclass(frozen=True)
class Either:
    """A value that is of one of several quantities, told apart by its unit. `what` names such a value in messages."""

    what: str
    kinds: tuple[Quantity, ...]

    def number(self, value: object) -> int:
        """Which of the quantities a written value is of. Raises ValueError for a value without a unit of any."""
        _, unit = _number_and_unit(value, self.what, self._examples)
        for number, kind in enumerate(self.kinds):
            if kind.factor_of(unit) is not None:
                return number
        known = ", ".join(unit for kind in self.kinds for unit in kind.factors)
        raise ValueError(f"{quote(value)} has an unknown unit {unit!r}: {self.what} is written in {known}")

    def parse(self, value: object) -> float:
        """The number in the unit of its own quantity. Raises ValueError."""
        return self.kinds[self.number(value)].parse(value)

    def normal(self, value: object) -> str:
        """The quantity as it is written, without needless space. Raises ValueError as `parse` does."""
        text = " ".join(value.split()) if isinstance(value, str) and len(value) <= _LONGEST else value
        return self.kinds[self.number(text)].normal(text)

    @property
    def _examples(self) -> str:
        *most, last = (kind.example for kind in self.kinds)
        return f"{', '.join(most)} or {last}"

    @property
    def example(self) -> str:
        return self.kinds[0].example

    @property
    def pattern(self) -> str:
        """A regular expression for the JSON Schema: what an editor accepts."""
        return "|".join(f"({kind.pattern})" for kind in self.kinds)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such a value."""
        return {"type": "string", "pattern": self.pattern, "examples": [kind.example for kind in self.kinds]}


QUEUE = Either("a queue", (SIZE_BYTES, QUEUE_PACKETS, QUEUE_MS))
"""The size of a link's queue: in bytes, in packets, or in the time that the last of them waits."""


@dataclass(frozen=True)
class Words:
    """The words that a value may be. `what` names such a value in messages: `a routing mode`."""

    what: str
    words: tuple[str, ...]

    def parse(self, value: object) -> str:
        """The word. Raises ValueError with the list of words."""
        if not isinstance(value, str) or value not in self.words:
            hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
            either = " or ".join([", ".join(self.words[:-1]), self.words[-1]] if self.words[1:] else self.words)
            raise ValueError(f"{quote(value)} is not {self.what}: write {either}{hint}")
        return value

    @property
    def example(self) -> str:
        return self.words[0]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such a value."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class FileName:
    """The path of a file. `what` names such a file in messages."""

    what: str
    example: str

    def parse(self, value: object) -> str:
        """The path. Raises ValueError."""
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_PATH or not value.isprintable():
            raise ValueError(f"{quote(value)} is no path of {self.what}: write it as in {self.example}")
        return value.strip()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such a value."""
        return {"type": "string", "minLength": 1, "maxLength": LONGEST_PATH, "examples": [self.example]}

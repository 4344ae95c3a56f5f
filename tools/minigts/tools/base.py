"""What a measuring tool is, and what all of them share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from minigts.errors import MinigtsError
from minigts.tools.columns import Column
from minigts.tools.options import Options
from minigts.topology.frames import Family, family_of
from minigts.topology.parts import Path
from minigts.topology.tcp import Buffers

START_S = 0.25
"""What starting a program in a container on an emulated host costs, beside the measuring itself."""


class ParseError(MinigtsError):
    """A tool's output holds no result. The message is one short line that says why."""


@dataclass(frozen=True)
class PathUnderTest:
    """From one endpoint to another: the far address, both MTUs in bytes, and the plan's path. `outer_mtu` is what a
    packet of `mtu` bytes has become when a link carries it, encapsulated.
    """

    address: str
    mtu: int
    outer_mtu: int
    path: Path
    port: int | None = None
    """Of a server that this sample has for itself; None: the tool's usual one."""
    calls_are_free: bool = False
    """In virtual time, where a program that sends without pause would send for ever in no time."""
    source: str = ""
    """The near address."""
    into_source: tuple[str, ...] = ()
    """In front of a program that the user names, what runs it in the near host's root; `into_target` in the far's."""
    into_target: tuple[str, ...] = ()
    buffers: tuple[Buffers, Buffers] | None = None
    """Of the host that sends, and of the one that receives. None: nobody asks for TCP's limit."""

    @property
    def family(self) -> Family:
        return family_of(self.address)


@dataclass(frozen=True)
class Measured:
    """A sample's value in its tool's unit, further columns by name, and what else was read back, in words.

    `payload_bytes` is all that arrived, from the first byte to the last; None where a part of it was not counted.
    """

    value: float
    extra: Mapping[str, float]
    note: str = ""
    payload_bytes: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What the plan's figure is to the measured one: a `ceiling` that nothing passes, what is `expected` to arrive, or
    simply the same by the plan. `sentence` says what it is, for captions."""

    kind: Literal["ceiling", "expected", ""] = ""
    sentence: str = "what the plan says"

    @property
    def heading(self) -> str:
        """Of a table's column."""
        return self.kind or "by the plan"

    @property
    def legend(self) -> str:
        """Beside a figure's line."""
        return f"{self.kind} by the plan".strip()


@dataclass(frozen=True)
class Tool:
    """One tool. The first argument of `argv`, `seconds` and `predicted` is its measurement's own options.

    `argv` is the client's command line; `seconds` how long it takes; `read` makes its output (stdout, stderr) a
    measurement, or raises ParseError; `predicted` is what the plan promises, in the unit of `value`, None where it
    promises nothing. `columns` are those that `read` may fill beside the value. `failure` says in a line why an exit
    code with that output is no result; empty where the code alone says enough.
    """

    name: str
    usual_name: str
    """What experiments mostly call its measurement; headings then say `value.label` instead."""
    value: Column
    columns: tuple[Column, ...]
    package: str
    """Debian's, whose version a manifest notes."""
    options: type[Options]
    argv: Callable[[Any, PathUnderTest], tuple[str, ...]]
    seconds: Callable[[Any, Path], float]
    read: Callable[[str, str], Measured]
    predicted: Callable[[Any, PathUnderTest], float | None]
    prediction: Prediction = Prediction()
    endless: Callable[[Any], bool] = lambda _options: False
    """Whether its sender would send for ever where calls of the system take no time."""
    series: Callable[[str], Mapping[str, Sequence[tuple[float, float]]]] | None = None
    """Where its output says what was at several moments: for columns of samples.csv, or `value`, pairs of seconds since
    it began and what was there. Of an output that `read` takes."""
    of_the_host: bool = False
    """It is a program of the host's own, which is run in a container's network and not in its file system."""
    made_for: Callable[[Any], Tool] | None = None
    """Where label, unit and output are what the options say: the tool that those make of it."""
    at_most_s: Callable[[Any], float] = lambda _options: 0.0
    """So long it has to be waited for, where its options say so."""
    failure: Callable[[int, str, str], str] = lambda _code, _stdout, _stderr: ""
    least: Callable[[Any, PathUnderTest], float | None] = lambda _options, _way: None
    """Where the hosts' buffers, and not the links, may set a ceiling that is `predicted`: what they carry at the least.
    Else None."""

    @property
    def quantity(self) -> str:
        """What a claim calls it: latency, throughput; empty where no claim can speak of it."""
        return self.value.quantity

    @property
    def unit(self) -> str:
        return self.value.unit or ""


def rtt_ms(_options: Options, way: PathUnderTest) -> float:
    """What the plan promises a tool that measures round trips."""
    return way.path.rtt_ms


def number(text: str, key: str) -> float:
    """A finite number, not negative. Raises ParseError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ParseError(f"{key}: {text[:40]!r} is not a number")
    return value


def count(text: str) -> int:
    """A whole number of at most fifteen digits. Raises ParseError."""
    return int(number(text[:15], "count"))


def clamped(value: float, low: float, high: float) -> float:
    """The value, or the end of the range that it lies beyond."""
    return min(max(value, low), high)


def complaint(text: str) -> str:
    """A tool's first line of complaint, cut to a readable length; empty when there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:160] if lines else ""

"""The model of a measuring tool, and helpers that several tools share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from minigts.errors import MinigtsError
from minigts.tools.columns import Column
from minigts.tools.options import Options
from minigts.topology.frames import Family, family_of
from minigts.topology.plan.elements import Path
from minigts.topology.tcp import Buffers

START_S = 0.25
"""How long a program takes to start in a container on an emulated host."""
SETUP_ROUND_TRIPS = 6
"""How many round trips a client and its server take at most before the first datagram or segment of a flow."""


class ParseError(MinigtsError):
    """A tool's output holds no result. The message is one short line that says why."""


@dataclass(frozen=True)
class PathUnderTest:
    """From one endpoint to another: the far address, both MTUs in bytes, and the plan's path. `outer_mtu` is the size
    of a packet of `mtu` bytes on a link, with its encapsulation.
    """

    address: str
    mtu: int
    outer_mtu: int
    path: Path
    port: int | None = None
    """The port of a server of this sample's own; None means the tool's usual port."""
    calls_are_free: bool = False
    """Whether system calls take no time, as in virtual time, so that a sender without pause would never end."""
    source: str = ""
    """The address of the endpoint that sends."""
    into_source: tuple[str, ...] = ()
    """The words before a program of the user's that run it in the sending host's root; `into_target`: the other's."""
    into_target: tuple[str, ...] = ()
    course: int | str = 0
    """The name of the lab's draw (`topology.plan.chance.course`), of which a tool's own random numbers are made,
    too."""
    buffers: tuple[Buffers, Buffers] | None = None
    """The TCP buffers of the sending and of the receiving host; None where TCP's limit is not needed."""

    @property
    def family(self) -> Family:
        return family_of(self.address)


@dataclass(frozen=True)
class Measured:
    """A sample's value in its tool's unit, further columns by name, and a `note` on what else was read back.

    `payload_bytes` is all the payload that arrived; None where a part of it was not counted.
    """

    value: float
    extra: Mapping[str, float]
    note: str = ""
    payload_bytes: float | None = None


@dataclass(frozen=True)
class Prediction:
    """How the plan's figure relates to the measured one: it is a `ceiling`, or what is `expected` to arrive, or, when
    empty, the same figure by the plan. `sentence` names it in captions."""

    kind: Literal["ceiling", "expected", ""] = ""
    sentence: str = "what the plan says"

    @property
    def heading(self) -> str:
        """The heading of a table's column."""
        return self.kind or "by the plan"

    @property
    def legend(self) -> str:
        """The label of a figure's line."""
        return f"{self.kind} by the plan".strip()


@dataclass(frozen=True)
class Service:
    """A program that runs at the path's end while the client does, in that host's root, and the port on which it
    listens; None where it listens on none that is known."""

    argv: tuple[str, ...]
    port: int | None = None


@dataclass(frozen=True)
class Tool:
    """One tool. The first argument of `argv`, `seconds` and `predicted` is its measurement's own options.

    `argv` is the client's command line; `seconds` how long it takes; `read` turns its output (stdout, stderr) into a
    measurement, or raises ParseError; `predicted` is the plan's figure, in the unit of `value`, None where the plan has
    none. `columns` are those that `read` may fill beside the value. `failure` says in a line why an exit code with that
    output is no result; empty where the code alone says enough.
    """

    name: str
    usual_name: str
    """The name that experiments mostly give its measurement; headings then show `value.label` instead."""
    value: Column
    columns: tuple[Column, ...]
    package: str
    """The Debian package, whose version is in the manifest."""
    options: type[Options]
    argv: Callable[[Any, PathUnderTest], tuple[str, ...]]
    seconds: Callable[[Any, Path], float]
    read: Callable[[str, str], Measured]
    predicted: Callable[[Any, PathUnderTest], float | None]
    prediction: Prediction = Prediction()
    endless: Callable[[Any], bool] = lambda _options: False
    """Whether its sender would never end where system calls take no time."""
    fills: Callable[[Any], bool] = lambda _options: False
    """Whether it sends by TCP for a time, as much as TCP lets it."""
    series: Callable[[str], Mapping[str, Sequence[tuple[float, float]]]] | None = None
    """Reads figures over time from an output that `read` accepts: for a column of samples.csv, or `value`, pairs of
    seconds since the start and the figure. None where the tool prints no such figures."""
    of_the_host: bool = False
    """Whether the program is the host's own, which is run in a container's network but not in its file system."""
    made_for: Callable[[Any], Tool] | None = None
    """The tool for given options, where these decide label, unit and output; None otherwise."""
    at_most_s: Callable[[Any], float] = lambda _options: 0.0
    """The longest time in seconds that its options let it run; 0 where they set none."""
    serves: Callable[[Any, PathUnderTest], Service | None] = lambda _options, _way: None
    """What has to run at the path's end, where hosts have no server of it running already."""
    failure: Callable[[int, str, str], str] = lambda _code, _stdout, _stderr: ""
    least: Callable[[Any, PathUnderTest], float | None] = lambda _options, _way: None
    """The lower bound of a `predicted` ceiling that the hosts' buffers, and not the links, may set; None otherwise."""

    def column(self, name: str) -> Column | None:
        """The column of that name, of the value or of those beside it; None for another one."""
        return next((each for each in (self.value, *self.columns) if each.name == name), None)

    @property
    def quantity(self) -> str:
        """Its name in claims: latency, throughput; empty where no claim can name it."""
        return self.value.quantity

    @property
    def unit(self) -> str:
        return self.value.unit or ""


def rtt_ms(_options: Options, way: PathUnderTest) -> float:
    """The plan's round trip in ms, the prediction for a tool that measures round trips."""
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


def clamp(value: float, low: float, high: float) -> float:
    """The value, limited to the range from `low` to `high`."""
    return min(max(value, low), high)


def complaint(text: str) -> str:
    """The first line of a tool's output that is not empty, cut to 160 characters; empty when there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:160] if lines else ""

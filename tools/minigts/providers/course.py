"""The course of a lab in virtual time: a running hash over all that passes the lab's clock, host by host.

Two labs with the same fingerprint have had the same frames, console bytes, draws of links and settings at the same
moments. Each host has two chains: of what came `to` it, and of what came `from` it. A chain's marks say what its hash
was at moments of the lab, so that the first moment can be found at which two labs part. The clock makes all of this
(provision/clock/src/course.rs).
"""

from __future__ import annotations

import os
import re
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from minigts.errors import InputError
from minigts.language.interface_names import port_name
from minigts.language.quantities import MOMENT_S
from minigts.topology.fields import MOST_LINKS, Interface

RECORD = "MINIGTS_RECORD"
"""The environment variable by which the clock of a new lab records every event: `all`, or from one moment of the lab to
another, `3s..4.5s`; either may be left out."""
MARKS = "MINIGTS_MARKS"
"""The environment variable with the time between two marks of a new lab, as 100ms; a second without it."""
NS_PER_S = 10**9
MOST_NS = 2**64 - 1
LEAST_EVERY_S = 1e-6
MOST_MARKS = 600
"""How many marks a chain has at the most; the clock keeps 512."""
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Moment = Annotated[int, Field(ge=0, le=MOST_NS)]
Count = Annotated[int, Field(ge=0, le=MOST_NS)]
_MARK = re.compile(r"(\d{1,20}) ([0-9a-f]{32}) (\d{1,20})", re.ASCII)


class ChainMark(NamedTuple):
    """A chain's hash after all events before the moment `until_ns`, and how many these were."""

    until_ns: int
    hash: str
    events: int


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, validate_by_name=True)


class EventChain(_Part):
    """All that went one way at a host: the hash and the number of events now, and marks, `every_ns` or a multiple of it
    apart: `1000000000 5f0a… 17`. Intervals without events have none."""

    hash: Digest
    count: Count
    every_ns: Annotated[int, Field(ge=1, le=MOST_NS)]
    marks: Annotated[tuple[Annotated[str, Field(pattern=f"^{_MARK.pattern}$")], ...], Field(max_length=MOST_MARKS)] = ()

    def timed_marks(self) -> tuple[ChainMark, ...]:
        """The marks, in the order of time."""
        found = [_MARK.fullmatch(mark) for mark in self.marks]
        return tuple(ChainMark(int(each[1]), each[2], int(each[3])) for each in found if each)


MOST_NUMBERS = 10_000
"""How many numbers a lab's machines have in a course: with kernels that light hosts share, and some that are unused."""


class HostCourse(_Part):
    """A host's part of a course; an unused number of the lab has an empty name."""

    name: Annotated[str, Field(max_length=200)]
    to: EventChain
    from_: Annotated[EventChain, Field(alias="from")]
    ports: Annotated[tuple[Interface, ...], Field(max_length=MOST_LINKS, exclude_if=lambda names: not names)] = ()
    """The names of its ports, by their numbers in the course. Empty, which is not stored, where they are eth1, eth2, …
    """

    def port(self, number: int) -> str:
        """The name of the port with that number, from 0."""
        return self.ports[number] if number < len(self.ports) else port_name(number + 1)


class Recording(_Part):
    """The state of a recording: before which moment nothing is missing in it, and why it ended there; None: nothing is
    missing."""

    whole_before_ns: Moment | None = None
    why: Annotated[str, Field(max_length=400)] | None = None


class RecordedCourse(_Part):
    """The course of a lab up to `now_ns`, by the lab's clock. `hosts` are by their numbers."""

    now_ns: Moment
    fingerprint: Digest
    hosts: Annotated[tuple[HostCourse, ...], Field(max_length=MOST_NUMBERS)]
    recording: Recording | None = None

    @property
    def seconds(self) -> float:
        """How long the lab is by its own clock."""
        return self.now_ns / NS_PER_S

    @property
    def events(self) -> int:
        """How many events there were, on all hosts together."""
        return sum(host.to.count + host.from_.count for host in self.hosts)


class CourseRequest(NamedTuple):
    """What a user wants to know of the courses of new labs."""

    every_ns: int
    recorded: tuple[int, int] | None
    """From when to when every event is recorded, in nanoseconds of the lab; None: never."""


def course_request() -> CourseRequest:
    """What the environment asks for. Raises InputError for a value that is none."""
    every_s = _moment(MARKS, os.environ.get(MARKS) or "1s")
    if every_s < LEAST_EVERY_S:
        raise InputError(f"{MARKS}: marks are at least 1us apart")
    return CourseRequest(round(every_s * NS_PER_S), _recorded(os.environ.get(RECORD, "")))


def _recorded(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    if text == "all":
        return 0, MOST_NS
    first, dots, last = text.partition("..")
    if not dots:
        raise InputError(
            f"{RECORD}: write all, or from one moment of the lab to another, as 3s..4.5s; not {text[:40]!r}"
        )
    from_ns = round(_moment(RECORD, first) * NS_PER_S) if first else 0
    until_ns = round(_moment(RECORD, last) * NS_PER_S) if last else MOST_NS
    if until_ns <= from_ns:
        raise InputError(f"{RECORD}: {text[:80]} ends before it begins")
    return from_ns, until_ns


def _moment(name: str, text: str) -> float:
    try:
        return MOMENT_S.parse(text)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error

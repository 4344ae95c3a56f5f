"""The transcript of an incident that was played: a line of JSON for the ticket, for each call, and for the end. It has
the lab's time and none of this machine's, so a replay of it is the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from minigts.arena.scores import ArenaAnswer, ArenaScore
from minigts.errors import InputError, Problem
from minigts.language import documents
from minigts.results.folder import read_text

MOST_CALLS = 200
"""How many calls an incident takes; then it wants its answer."""
_OF_A_LINE = documents.Bounds(bytes=8 << 20)
Argument: TypeAlias = str | int | float | bool


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PlayedTicket(_Line):
    """The first line: which incident, who plays, and the ticket."""

    kind: Literal["ticket"] = "ticket"
    format: Literal[1] = 1
    incident: Annotated[str, Field(max_length=60)]
    agent: Annotated[str, Field(max_length=60)]
    ticket: str
    minigts: Annotated[str, Field(max_length=60)]


class PlayedCall(_Line):
    """A call of a tool, at a moment of the lab's time in seconds, and what it took of that."""

    kind: Literal["call"] = "call"
    number: int
    tool: str
    arguments: dict[str, Argument]
    answer: str
    at_s: float
    took_s: float


class PlayedEnd(_Line):
    """The last line: the answer, and the score."""

    kind: Literal["end"] = "end"
    answer: ArenaAnswer
    score: ArenaScore


_LINES: TypeAdapter[PlayedTicket | PlayedCall | PlayedEnd] = TypeAdapter(
    Annotated[PlayedTicket | PlayedCall | PlayedEnd, Field(discriminator="kind")]
)


@dataclass(frozen=True)
class Transcript:
    """A whole transcript."""

    ticket: PlayedTicket
    calls: Sequence[PlayedCall]
    end: PlayedEnd

    @property
    def text(self) -> str:
        return "".join([line_of(self.ticket), *map(line_of, self.calls), line_of(self.end)])


def line_of(entry: PlayedTicket | PlayedCall | PlayedEnd) -> str:
    return entry.model_dump_json() + "\n"


def read(path: Path) -> Transcript:
    """The transcript of a file. Raises InputError with the line that is none."""
    return parse(read_text(path), str(path))


def parse(text: str, file: str) -> Transcript:
    """As `read`, from text; `file` is its name in messages."""
    lines = list(_parse_lines(text, file))
    first, *calls, last = lines if len(lines) > 1 else (None, None)
    called = [each for each in calls if isinstance(each, PlayedCall)]
    if not isinstance(first, PlayedTicket) or not isinstance(last, PlayedEnd) or len(called) < len(calls):
        raise InputError([Problem(file, 1, "is no transcript: a ticket, calls, and the end, a line each")])
    return Transcript(first, called, last)


def _parse_lines(text: str, file: str) -> Iterator[PlayedTicket | PlayedCall | PlayedEnd]:
    for number, line in enumerate(text.splitlines(), 1):
        if number > MOST_CALLS + 2:
            raise InputError([Problem(file, number, f"a transcript has at most {MOST_CALLS} calls")])
        yield parse_line(line, file, number)


def parse_line(line: str, file: str, number: int) -> PlayedTicket | PlayedCall | PlayedEnd:
    """A line of a transcript. Raises InputError."""
    try:
        return documents.value(line, _LINES, _OF_A_LINE)
    except documents.Unreadable as error:
        raise InputError([Problem(file, number, str(error))]) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise InputError([Problem(file, number, f"is no line of a transcript: {where}: {first['msg']}")]) from None

"""The tool that runs any program that an experiment's file names, and finds numbers in its output: one that is the
sample's value, and further ones beside it.

The file gives each number its unit and its label, so each measurement has a tool of its own, made by `made_for`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, Self

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from minigts.language import documents
from minigts.language.fields import Strict, choice, matching, number, text, whole
from minigts.language.problems import Finding, Misplaced, did_you_mean, list_names, quote
from minigts.machine import searching
from minigts.tools import iperf3_tcp, iperf3_udp, ping
from minigts.tools.base import START_S, Measured, ParseError, PathUnderTest, Service, Tool, complaint
from minigts.tools.columns import BESIDE, SHARED, VALUE, Column
from minigts.tools.options import Duration, Options
from minigts.topology.plan.elements import Path

KILLED_AFTER_S = 2.0
"""How long after its timeout a program that does not end is killed."""
TIME_IS_UP, NOT_STARTED, NOT_FOUND = 124, 126, 127
"""Exit codes of timeout(1) and sh(1)."""
LONGEST_LINE, LONGEST_PATTERN = 4000, 1000
OF_AN_OUTPUT = documents.Bounds(elements=1_000_000, bytes=64 << 20)
GROUP = "value"
"""The name of the group that holds the number, in a regular expression with several groups."""
_PLACES = ("source", "target", "port", "duration")
_HOLE = re.compile(r"\{\{([a-z][a-z0-9]*)\}\}|(?<![$%{])\{([a-z][a-z0-9]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9]{0,39}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}", re.ASCII)
TAKEN = frozenset(
    (
        *(
            "sample",
            "overlay",
            "measurement",
            "tool",
            "source",
            "target",
            "hops",
            "kind",
            "repetition",
            "replicate",
            "value",
            "unit",
        ),
        *("predicted", "min", "median", "mean", "p99", "max", "stdev", "sent", "offered", "retransmits", "lost", "n"),
        *("started", "seconds", "attempts", "ok", "error", "note", "tainted", "repeats", "low", "high", "published"),
        *("column", "from", "to", "of", "path", "port", "duration"),
    )
)
"""Words that have another meaning in tables, in claims or in the line itself."""
COLUMNS_OF_ALL = frozenset(
    (
        *(each.name for each in (*SHARED, *BESIDE, *ping.TOOL.columns, *iperf3_tcp.TOOL.columns)),
        *(each.name for each in iperf3_udp.TOOL.columns),
        *("foreign_cores", "waited_cores", "steal_cores", "lag_ms", "cross", "seed", "routing", "experiment", "time"),
        "x",
    )
)
"""The columns that the samples of every experiment may have, and words that a figure's axes have."""


def _line(given: object) -> str | tuple[str, ...]:
    words = (given,) if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{quote(given)} is no command: write a shell's line, or a list of words")
    if not words or not words[0].strip() or sum(map(len, words)) > LONGEST_LINE:
        raise ValueError(f"a command has from 1 to {LONGEST_LINE} characters")
    return given if isinstance(given, str) else tuple(words)


def _pattern(given: object) -> str:
    if not isinstance(given, str) or len(given) > LONGEST_PATTERN:
        raise ValueError(f"{quote(given)} is no regular expression of at most {LONGEST_PATTERN} characters")
    try:
        groups = _compiled(given)
    except re.error as error:
        where = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise ValueError(f"{given!r} is no regular expression: {error.msg}{where}") from error
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{given!r} is no regular expression that can be tried") from error
    if groups.groups > 1 and GROUP not in groups.groupindex:
        raise ValueError(
            f"{given!r} has {groups.groups} groups: name the one with the number, as in (?P<{GROUP}>[0-9.]+), or write "
            "the others as (?:…)"
        )
    return given


def _json_path(given: object) -> str:
    if not isinstance(given, str) or len(given) > LONGEST_PATTERN or not given.strip():
        raise ValueError(f"{quote(given)} is no JMESPath of at most {LONGEST_PATTERN} characters, as in end.rtt_ms")
    try:
        jmespath.compile(given)
    except JMESPathError as error:
        at = getattr(error, "lex_position", None)
        where = f" at character {at + 1}" if isinstance(at, int) and at >= 0 else ""
        reason = re.sub(r"^(Bad jmespath expression|Parse error at column \d+), ?|:$", "", _reason(error))
        raise ValueError(f"{given!r} is no JMESPath: {reason}{where}") from error
    except RecursionError as error:
        raise ValueError(f"{quote(given)} is no JMESPath that can be tried: it is nested too deep") from error
    return given


def _reason(error: JMESPathError) -> str:
    """The first line of jmespath's message, without the expression that it repeats."""
    return (str(getattr(error, "msg", "") or getattr(error, "message", "") or error).splitlines() or ["?"])[0]


def _word(given: object) -> str:
    text_ = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(text_, str) or not _WORD.fullmatch(text_):
        raise ValueError(f"{quote(given)} is no word of letters, digits, `.`, `_`, `:` and `-`, 40 at most")
    return text_


Line = Annotated[
    str | tuple[str, ...],
    BeforeValidator(_line),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
"""A line for sh, or the words of one command."""
_TEXT = WithJsonSchema({"type": "string"})


class Numbered(Strict):
    """Where in a program's output a number is, and what it is."""

    find: Annotated[str, BeforeValidator(_pattern), _TEXT] | None = None
    """A regular expression of Python's; the number is its group `value`, its only group, or all that it matches."""
    json_path: Annotated[str, BeforeValidator(_json_path), _TEXT] | None = Field(default=None, alias="json")
    """A JMESPath to the number, where the program prints JSON."""
    factor: Annotated[float, *number("a factor")] = 1.0
    """What the number is multiplied by, to be in `unit`."""
    unit: Annotated[str, *matching("a unit: 1 to 20 characters without blanks", re.compile(r"[^\s\d]\S{0,19}"))]
    """The unit of the number times `factor`."""
    label: Annotated[str, text("a label", 60, one_line=True)]
    """What the number is, for axes and tables."""
    better: Annotated[Literal["higher", "lower"], choice("a direction", "higher", "lower")] | None = None
    """Whether a higher or a lower number is better."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if findings := list(self._wrong_number()):
            raise Misplaced(findings)
        return self

    def _wrong_number(self) -> Iterator[Finding]:
        if (self.find is None) == (self.json_path is None):
            yield (), "one of `find:` and `json:` says where in the output the number is"
        if not self.label.strip():
            yield ("label",), "an empty label; write what the number is"
        if not self.factor:
            yield ("factor",), "times 0 every number is 0"


_OWN = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
MOST_NUMBERS = 40
"""The most numbers beside a sample's value."""


class CommandOptions(Numbered, Options):
    """Any program, and where in its output the number is."""

    run: Line
    """What is run at the path's beginning: a line for sh, or a list of words."""
    serve: Line | None = None
    """What runs at the path's end meanwhile; it is ended when the program has ended."""
    port: Annotated[int, *whole("a port", 1, 65535)] | None = None
    """The port on which `serve` listens, {port} in the lines; the program starts when `serve` listens there."""
    values: dict[
        Annotated[str, *matching("a name: lower-case letters and digits, a letter first, at most 40", _NAME)],
        Annotated[str, BeforeValidator(_word), WithJsonSchema({"type": ["string", "integer"]})],
    ] = Field(default_factory=dict, alias="with")
    """Words of your own for the lines, as {NAME}; `vary` may list others."""
    also: Annotated[
        dict[Annotated[str, *matching("a column's name: lower-case words with _ between them", _OWN)], Numbered],
        Field(max_length=MOST_NUMBERS),
    ] = Field(default_factory=dict, exclude_if=lambda also: not also)
    """Further numbers of the same output, by the names of their columns in samples.csv."""
    duration_s: Duration = Field(default=2.0, alias="duration")
    """About how long the program runs; {duration} in the lines gives it in seconds."""
    timeout_s: Duration | None = Field(default=None, alias="timeout")
    """When the program is ended and the sample fails; by default after three times the duration plus 15 s."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        findings = list(self._wrong_number())
        findings += [
            (("also", name), f"{name!r} has another meaning already; choose another name")
            for name in self.also
            if name in TAKEN or name in self.values or name in COLUMNS_OF_ALL
        ]
        findings += [
            (("with", name), f"{name!r} has another meaning already; choose another name")
            for name in self.values
            if name in TAKEN
        ]
        known = [*_PLACES, *self.values]
        for key, line in (("run", self.run), ("serve", self.serve)):
            for hole in (hole for word in _words(line) for hole in _HOLE.finditer(word)):
                name = hole[2]
                if name and name not in known:
                    hint = did_you_mean(name, known) or f"; there are {list_names(known)}"
                    findings.append(
                        ((key,), f"nothing is called {{{name}}}{hint}; braces of the line's own are doubled")
                    )
                if name == "port" and self.port is None:
                    findings.append(((key,), "{port} needs `port:`"))
        if findings:
            raise Misplaced(findings)
        return self

    @property
    def may_vary(self) -> list[str]:
        return ["duration", *self.values]

    def choose(self, chosen: Mapping[str, str | int]) -> Self:
        written = self.model_dump(by_alias=True, exclude_none=True)
        own = {key: value for key, value in chosen.items() if key in self.values}
        rest = {key: value for key, value in chosen.items() if key not in self.values}
        return type(self).model_validate({**written, **rest, "with": {**self.values, **own}})

    def lasting(self, duration_s: float) -> Self:
        return self.model_copy(update={"duration_s": duration_s})

    @property
    def at_most_s(self) -> float:
        """After how many seconds the program is ended."""
        return self.timeout_s if self.timeout_s is not None else 3 * self.duration_s + 15


def _words(line: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if line is None else (line,) if isinstance(line, str) else line


def _filled(line: str | tuple[str, ...], options: CommandOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The line's command with addresses and values filled in."""
    places = {
        "source": way.source,
        "target": way.address,
        "port": str(options.port),
        "duration": f"{options.duration_s:g}",
        **options.values,
    }
    words = tuple(
        _HOLE.sub(lambda hole: f"{{{hole[1]}}}" if hole[1] else places[hole[2]], word) for word in _words(line)
    )
    return ("sh", "-c", *words) if isinstance(line, str) else words


def argv(options: CommandOptions, way: PathUnderTest) -> tuple[str, ...]:
    """The program's command line; timeout(1) ends it, where it runs, at its timeout."""
    at_most = f"{options.at_most_s:g}"
    return ("timeout", "-k", f"{KILLED_AFTER_S:g}", at_most, *way.into_source, *_filled(options.run, options, way))


def serves(options: CommandOptions, way: PathUnderTest) -> Service | None:
    """`serve` at the other end, in its host's root; None without it."""
    if options.serve is None:
        return None
    return Service((*way.into_target, *_filled(options.serve, options, way)), options.port)


def seconds(options: CommandOptions, _path: Path) -> float:
    """How long it takes, by its `duration`, in seconds."""
    return options.duration_s + START_S


def parse(options: Numbered, stdout: str, stderr: str = "") -> float:
    """The number in a program's output, times `factor`: `find: 'total=(\\S+)'` finds 0.035 in the line `total=0.035`.

    Raises ParseError.
    """
    found = _by_pattern(options.find, stdout) if options.find is not None else _by_path(options.json_path, stdout)
    said = complaint(stdout) or complaint(stderr) or "nothing"
    if found is None:
        what = f"`find: {options.find}`" if options.find is not None else f"`json: {options.json_path}`"
        raise ParseError(f"{options.label}: {what} finds nothing in what the program printed: {said}")
    try:
        number_ = float(found) * options.factor
    except (ValueError, OverflowError):
        number_ = math.nan
    if not math.isfinite(number_):
        raise ParseError(f"{options.label}: {str(found)[:60]!r} is no number; the program printed: {said}")
    return number_


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def _by_pattern(pattern: str, stdout: str) -> str | None:
    """The text of the first match; None where there is none. Raises ParseError."""
    if len(stdout) > OF_AN_OUTPUT.bytes:
        raise ParseError(f"the program printed more than {OF_AN_OUTPUT.bytes >> 20} MiB")
    try:
        return searching.search("pattern", pattern, stdout)
    except (searching.TookTooLong, searching.Failed) as error:
        raise ParseError(f"`find: {pattern}`: {error}") from error


def _by_path(path: str | None, stdout: str) -> str | None:
    try:
        documents.document(stdout, OF_AN_OUTPUT, whole=float)
    except documents.Unreadable as error:
        where = f", line {error.line}" if error.line else ""
        raise ParseError(
            f"the output is no JSON{where}: {complaint(stdout) or 'the program printed nothing'}"
        ) from error
    try:
        return searching.search("path", path or "", stdout)
    except (searching.TookTooLong, searching.Failed) as error:
        raise ParseError(f"`json: {path}`: {complaint(str(error))}") from error


def failure(options: CommandOptions, code: int, stdout: str, stderr: str) -> str:
    """One line that says why a run that ended with this exit code is no result; empty for 0."""
    said = complaint(stderr) or complaint(stdout) or "it said nothing"
    if code == 0:
        return ""
    if code in (TIME_IS_UP, 128 + 9):
        return f"{options.label}: the program did not end within {options.at_most_s:g} s; so far: {said}"
    if code in (NOT_STARTED, NOT_FOUND):
        return f"{options.label}: the program cannot be started: {said}"
    return f"{options.label}: the program ended with code {code}: {said}"


def _read(options: CommandOptions, stdout: str, stderr: str) -> Measured:
    beside = {name: parse(each, stdout, stderr) for name, each in options.also.items()}
    return Measured(parse(options, stdout, stderr), beside)


def _none(*_arguments: Any) -> None:
    """The plan predicts nothing for an unknown program."""


RESULT = Column(VALUE, "result", "", quantity="value", follows=("delay", "rate", "loss", "jitter"))


def _beside(name: str, number: Numbered) -> Column:
    return Column(
        name,
        number.label,
        number.unit,
        follows=RESULT.follows,
        panel=True,
        tabled=True,
        better=number.better,
    )


def tool_for(options: CommandOptions) -> Tool:
    """The tool of a measurement with these options: with its label, its unit, and its way to read the output."""
    return replace(
        TOOL,
        value=replace(RESULT, label=options.label, unit=options.unit, better=options.better),
        columns=tuple(_beside(name, each) for name, each in options.also.items()),
        read=partial(_read, options),
        failure=partial(failure, options),
    )


def _unmade(_stdout: str, _stderr: str) -> Measured:
    raise ParseError("command: the options do not say where in the output the number is")


TOOL = Tool(
    name="command",
    usual_name="command",
    value=RESULT,
    columns=(),
    package="",
    options=CommandOptions,
    argv=argv,
    seconds=seconds,
    read=_unmade,
    predicted=_none,
    made_for=tool_for,
    of_the_host=True,
    at_most_s=lambda options: options.at_most_s,
    serves=serves,
)

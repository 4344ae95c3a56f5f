"""The content of a lesson's file, N-NAME.yaml: random values, questions, measurements and checks. minigts' own lessons
are in docs/lessons, a teacher's in the directories that `paths.LESSONS` names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from minigts import overlays, paths
from minigts.errors import InputError
from minigts.language.fields import Strict, whole
from minigts.language.formula import formula
from minigts.language.problems import quote
from minigts.language.quantities import RATE_MBIT, TIME_MS, WINDOW_BYTES, Quantity, plain_number
from minigts.language.source import Language, read_text
from minigts.language.tree import read_tree
from minigts.language.validation import read_model
from minigts.lessons import breaks
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

FOLDER = "docs/lessons"
_NAME = "[0-9]*-*.yaml"
FIGURES = "\n## What you see\n"
"""The heading of the part of a lesson's page that has the measured figures."""
LANGUAGE = Language("lesson", "`title:`", 100_000, "write out what is meant")

Expression = Annotated[str, AfterValidator(lambda written: formula(written).written)]
Kind = Literal["time", "rate", "size", "number"]
"""The kind of a figure. Files have it with a unit; arithmetic is in ms, Mbit/s or bytes."""
QUANTITIES: Mapping[str, tuple[Quantity, str]] = {
    "time": (TIME_MS, "ms"),
    "rate": (RATE_MBIT, "Mbit/s"),
    "size": (WINDOW_BYTES, "bytes"),
}


def figure(kind: Kind, written: object) -> float:
    """The number for `21.5ms`, `40mbit`, `30kB` or `3`, in ms, Mbit/s or bytes. Raises ValueError."""
    return plain_number(written, "a number") if kind == "number" else QUANTITIES[kind][0].parse(written)


def value_text(kind: Kind, value: float) -> str:
    """`21.5 ms`"""
    return f"{value:.6g}" if kind == "number" else f"{value:.6g} {QUANTITIES[kind][1]}"


class Drawn(Strict):
    """A value that is drawn for each student."""

    kind: Kind | Literal["word"]
    """The kind of the value. A `word` is no figure: only the topology and measurements use it."""
    values: Annotated[tuple[str, ...], Field(min_length=1)]
    """The values of which the seed selects one; without a seed it is the first."""

    def draw(self, lesson: int, name: str, seed: str | None) -> str:
        """The value for a seed, which is the same on every machine and in every version of Python."""
        if seed is None:
            return self.values[0]
        digest = hashlib.sha256(f"{lesson}/{name}/{seed}".encode()).digest()
        return self.values[int.from_bytes(digest[:8], "big") % len(self.values)]


class Hint(Strict):
    """An explanation of a typical wrong figure."""

    near: Expression
    says: str
    """The text, with `$name` for a drawn value as the student's topology has it."""


class RightValues(Strict):
    """The right values of a figure: `is` plus or minus `within` (default: 0), or from `least` to `most`."""

    kind: Kind
    exactly: Expression | None = Field(default=None, alias="is")
    within: Expression = "0"
    least: Expression | None = None
    most: Expression | None = None
    hints: tuple[Hint, ...] = ()
    otherwise: str
    """The text for a wrong figure that fits no hint, with `$name` as in a hint."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.exactly is None) == (self.least is None and self.most is None):
            raise ValueError("write either `is:`, or `least:`, `most:` or both")
        return self


class Asked(RightValues):
    """A question to the student."""

    ask: str


class Measurement(Strict):
    """Commands on a host that print a line `NAME NUMBER` for each figure. They have shell variables: the drawn values,
    the answers, each host's address by its name, its container's as `NAME_container`, and the host's name as `here`."""

    on: str
    inside: Literal["host", "container"] = "host"
    run: str
    gives: Annotated[tuple[str, ...], Field(min_length=1)]
    timeout_s: Annotated[int, *whole("a time-out", 1, 300)] = 60


class Again(Strict):
    """One step by which a teacher's machine repeats a student's work: a command on a host, which may read one of the
    student's files, or one of these files as the policy."""

    on: str | None = None
    run: str | None = None
    stdin: str | None = None
    policy: str | None = None

    @model_validator(mode="after")
    def _is_one_step(self) -> Self:
        if (self.policy is None) == (self.run is None) or (self.run is None) != (self.on is None):
            raise ValueError("write either `on:` and `run:`, or `policy:`")
        return self

    @property
    def file(self) -> str | None:
        """The student's file that this step reads; None: none."""
        return self.stdin or self.policy


class Lesson(Strict):
    """A lesson of one hour."""

    title: str
    about: str
    """A line for the list of lessons."""
    draw: dict[str, Drawn] = Field(default_factory=dict)
    topology: str
    """The text of the topology file, with `$name` for each drawn value."""
    files: dict[Annotated[str, Field(pattern=r"^[a-z]{1,20}\.(yaml|txt)$")], str] = Field(default_factory=dict)
    """Files for the student to complete, in addition to answers.yaml: their first content by name."""
    predict: Asked | None = None
    """What is to be predicted; None in an exercise in finding a fault."""
    answers: dict[str, Asked] = Field(default_factory=dict)
    find: tuple[str, ...] = ()
    """The kinds of faults (see `breaks`) of which a student's seed draws one, to be found and mended. Such a lesson
    asks and measures nothing else."""
    shell: str = ""
    """Shell functions for all measurements."""
    measure: tuple[Measurement, ...] = ()
    checks: dict[str, RightValues] = Field(default_factory=dict)
    """The right values of measured figures, by name."""
    again: tuple[Again, ...] = ()
    """The steps that repeat a student's work in the lab, apart from setting and cutting links."""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if bool(self.find) == (self.predict is not None) or (self.find and (self.answers or self.measure)):
            raise ValueError("write either `predict:` and `answers:`, or `find:`")
        breaks.find_kinds(self.find)
        self._require_drawn("its topology", self.topology)
        measured = {name for each in self.measure for name in each.gives}
        known = {*(name for name, each in self.draw.items() if each.kind != "word"), *self.answers, *measured}
        wanted = (*([self.predict] if self.predict else []), *self.answers.values(), *self.checks.values())
        for each in wanted:
            for text in (each.otherwise, *(hint.says for hint in each.hints)):
                self._require_drawn(f"the text {quote(text)}", text)
        used = {name for each in wanted for text in _expressions(each) for name in formula(text).names}
        if unknown := sorted({*used, *self.checks} - known):
            raise ValueError(f"nothing is drawn, asked or measured as {', '.join(unknown)}")
        if lost := sorted({each.file for each in self.again if each.file is not None} - set(self.files)):
            raise ValueError(f"nothing is handed out as {', '.join(lost)}")
        return self

    def _require_drawn(self, what: str, text: str) -> None:
        """Raises ValueError where a text has a `$name` of which nothing is drawn."""
        if not (template := Template(text)).is_valid():
            raise ValueError(f"{what} has a $ without a name behind it; write $$ for the sign itself")
        if strange := sorted(set(template.get_identifiers()) - set(self.draw)):
            raise ValueError(f"{what} has {', '.join(f'${name}' for name in strange)}, and nothing is drawn as that")


def _expressions(wanted: RightValues) -> Iterator[str]:
    bounds = (wanted.exactly, wanted.within, wanted.least, wanted.most)
    yield from (text for text in bounds if text is not None)
    yield from (hint.near for hint in wanted.hints)


@dataclass(frozen=True)
class NumberedLesson:
    """A lesson with its number and its page."""

    number: int
    lesson: Lesson
    page: Path

    def text(self, seed: str | None, *, figures: bool) -> str:
        """The text of its page; without `figures` only the part before the measured figures, which are followed by
        those of the seed."""
        whole = self.page.read_text(encoding="utf-8")
        return whole + self._of_seed(seed) if figures else whole.partition(FIGURES)[0]

    def _of_seed(self, seed: str | None) -> str:
        """What a seed has drawn, and what follows from it for the prediction where nothing measured is needed; empty
        without a seed."""
        if seed is None or not self.lesson.draw:
            return ""
        drawn = ", ".join(f"`{name}` is {value}" for name, value in self.draw_values(seed).items())
        asked, known = self.lesson.predict, self.figures(seed)
        told = ""
        with suppress(KeyError, ValueError):  # of a figure that is only measured
            if asked is not None and asked.exactly is not None:
                told = f", and {value_text(asked.kind, formula(asked.exactly).value(known))} was to be predicted"
        return f"\nWith your seed {drawn}{told}.\n"

    @property
    def lab(self) -> str:
        """The name of its topology, and so of its lab."""
        return f"lesson-{self.number}"

    def draw_values(self, seed: str | None) -> dict[str, str]:
        """The drawn values by name, as they are written in a topology."""
        return {name: each.draw(self.number, name, seed) for name, each in self.lesson.draw.items()}

    def figures(self, seed: str | None) -> dict[str, float]:
        """The drawn figures by name, in ms, Mbit/s or bytes."""
        kinds = {name: each.kind for name, each in self.lesson.draw.items()}
        return {
            name: figure(kind, text) for name, text in self.draw_values(seed).items() if (kind := kinds[name]) != "word"
        }

    def topology(self, seed: str | None) -> str:
        """The text of the topology file."""
        return Template(self.lesson.topology).substitute(self.draw_values(seed))

    def fault(self, seed: str | None) -> breaks.LessonFault:
        """The fault to be found, in a lesson that has one."""
        return breaks.draw(self.plan(seed), seed or "", self.lesson.find)

    def plan(self, seed: str | None) -> Plan:
        """Raises InputError for a topology that is none, or has another name than the lesson's lab."""
        plan = parse(self.topology(seed), f"lesson {self.number}", known_overlays=overlays.known_names())
        if plan.name != self.lab:
            raise InputError(
                f"lesson {self.number}: its topology is called {quote(plan.name)}; write `name: {self.lab}`"
            )
        return plan


def numbers() -> list[int]:
    """Of all lessons, as their files' names have them."""
    return sorted(_number(file) for file in _files())


def all_lessons() -> tuple[NumberedLesson, ...]:
    """All lessons by number. Raises InputError for a file that is no lesson."""
    return tuple(_read(file) for file in sorted(_files(), key=_number))


def lesson(number: int) -> NumberedLesson:
    """The lesson of that number. Raises InputError when there is none."""
    found = [file for file in _files() if _number(file) == number]
    if not found:
        known = ", ".join(str(each) for each in numbers())
        raise InputError(
            f"no lesson {number}; lessons are {known}: minigts lesson lists them, and a teacher's own "
            "with --lessons DIR"
        )
    return _read(found[0])


def choose(directory: Path) -> None:
    """Let this process know the lessons of that directory beside minigts' own. Raises InputError for one that has
    none."""
    if not any(directory.glob(_NAME)):
        raise InputError(f"--lessons {directory}: no lesson is there; one is N-NAME.yaml with its page N-NAME.md")
    os.environ[paths.LESSONS] = str(directory.absolute())


def _files() -> Iterator[Path]:
    """The files of all lessons. Raises InputError for two of one number."""
    seen: dict[int, Path] = {}
    for folder in (own_folder(), *paths.lessons_roots()):
        for file in sorted(folder.glob(_NAME)):
            if (number := _number(file)) in seen:
                raise InputError(f"{file}: lesson {number} is {seen[number].name} already; give yours another number")
            seen[number] = file
            yield file


def own_folder() -> Path:
    """The folder of minigts' own lessons."""
    return paths.project_root() / FOLDER


def _number(file: Path) -> int:
    return int(file.name.partition("-")[0])


def _read(file: Path) -> NumberedLesson:
    read = read_model(read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE), str(file), Lesson, lambda _lesson: ())
    page = file.with_suffix(".md")
    if not page.is_file():
        raise InputError(f"{file}: its page {page.name} is not beside it")
    return NumberedLesson(_number(file), read, page)

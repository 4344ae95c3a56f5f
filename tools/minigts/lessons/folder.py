"""A student's folder: its lesson, the prediction, and the answers. Its files are untrusted input: they are read with
all checks, and nothing in them is run.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from minigts import paths
from minigts.errors import InputError, Problem
from minigts.language.fields import Strict, text, unknown, whole
from minigts.language.problems import Finding, list_names, quote
from minigts.language.source import Language, read_text
from minigts.language.tree import read_tree
from minigts.language.validation import read_model
from minigts.lessons.model import FIGURES, Asked, NumberedLesson, figure, lesson, own_folder

RECORD, PREDICTION, ANSWERS, TOPOLOGY, PAGE = (
    "lesson.yaml",
    "prediction.yaml",
    "answers.yaml",
    "topology.yaml",
    "page.md",
)
LANGUAGE = Language("student's file", "a key, as in `answers:`", 20_000, "write out what is meant")
PROGRAM = "minigts"
LONGEST_PAGE_BYTES = 200_000
LONGEST_SEED = 64
WHAT, WHERE = "what", "where"
"""The answers of an exercise in finding a fault: its kind, and the host."""
M = TypeVar("M", bound=Strict)


class LessonRecord(Strict):
    """lesson.yaml: the lesson's number, and the student's seed."""

    lesson: Annotated[int, *whole("a lesson", 0, 99)]
    seed: Annotated[str, text("a seed", LONGEST_SEED, one_line=True)] | None = None


class _Prediction(Strict):
    prediction: str


class _Answers(Strict):
    answers: dict[str, str | None]


@dataclass(frozen=True)
class StudentWork:
    """The content of a student's folder, with figures in ms, Mbit/s or bytes."""

    numbered: NumberedLesson
    seed: str | None
    prediction: float | None
    answers: dict[str, float]
    found: dict[str, str] = field(default_factory=dict)
    """What the student has found of a fault, by WHAT and WHERE."""


def make(folder: Path, content: Mapping[str, str]) -> None:
    """Make a student's folder, which must not exist, with these files by name. Raises InputError."""
    try:
        paths.users_folder(folder)
    except FileExistsError:
        raise InputError(f"{folder}: exists already, and is left alone; name another folder with --folder") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    for name, written in content.items():
        paths.write_for_user(folder / name, written)


def start(numbered: NumberedLesson, folder: Path, seed: str | None) -> tuple[str, ...]:
    """Make the folder of a lesson, which must not exist; return the names of its files. Raises InputError."""
    if seed is not None and (not seed or len(seed) > LONGEST_SEED or not seed.isprintable()):
        raise InputError(f"{quote(seed)} is no seed: write at most {LONGEST_SEED} characters, such as a student's name")
    record = f"lesson: {numbered.number}\n" + ("" if seed is None else f"seed: {_quoted(seed)}\n")
    numbered.plan(seed)
    lessons, is_command = numbered.page.parent, bool(shutil.which(PROGRAM)) or paths.is_installed()
    launcher = {} if is_command and lessons == own_folder() else {PROGRAM: _launcher(lessons, is_command)}
    content = {
        PAGE: numbered.text(seed, figures=False),
        TOPOLOGY: numbered.topology(seed),
        ANSWERS: "".join(_asking(numbered)),
        **numbered.lesson.files,
        RECORD: record,
        **launcher,
    }
    make(folder, content)
    for name in launcher:
        (folder / name).chmod(0o755 & ~paths.users_umask())
    return tuple(content)


def program(folder: Path) -> str:
    """What to type in the folder for minigts: `minigts` where that is a command, otherwise the folder's own."""
    return f"./{PROGRAM}" if (folder / PROGRAM).exists() else PROGRAM


def _launcher(lessons: Path, is_command: bool) -> str:
    """A program that runs minigts where it is no command, and with a teacher's own lessons where this is one."""
    program = PROGRAM if is_command else shlex.quote(str(paths.project_root() / PROGRAM))
    known = "" if lessons == own_folder() else f"export {paths.LESSONS}={shlex.quote(str(lessons))}\n"
    return f'#!/bin/sh\n# Runs minigts from this folder.\n{known}exec {program} "$@"\n'


def _asking(numbered: NumberedLesson) -> Iterator[str]:
    if numbered.lesson.find:
        yield f"# One of {', '.join(numbered.lesson.find)}, and the host on which it is.\n"
        yield f"answers:\n  {WHAT}:\n  {WHERE}:\n"
        return
    yield "# Write each answer after its name, with its unit: 52.3ms, 40mbit, 30kB; or a plain number.\nanswers:\n"
    for name, asked in numbered.lesson.answers.items():
        yield f"  # {asked.ask}\n  {name}:\n"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def find(numbered: NumberedLesson, given: Path | None) -> Path:
    """The folder of a lesson: `given`; None: the working directory, or lesson-N in it. Raises InputError."""
    candidates = [given] if given is not None else [Path(), Path(numbered.lab)]
    for folder in candidates:
        if (folder / RECORD).is_file() and read_record(folder).lesson == numbered.number:
            return folder
    raise InputError(
        f"{candidates[-1]}: no folder of lesson {numbered.number}; begin with: minigts lesson {numbered.number} start"
    )


def read_record(folder: Path) -> LessonRecord:
    """The content of lesson.yaml. Raises InputError."""
    return _read(folder / RECORD, LessonRecord)


def predict(numbered: NumberedLesson, folder: Path, written: str) -> None:
    """Write a prediction, which cannot be changed, and add the measured figures to the page. Raises InputError."""
    if numbered.lesson.predict is None:
        raise InputError(
            f"lesson {numbered.number} has nothing to predict: go on with minigts lesson {numbered.number} break"
        )
    if os.path.lexists(folder / PREDICTION):
        before = _read(folder / PREDICTION, _Prediction).prediction
        raise InputError(f"you have predicted {before} already; now measure, and compare")
    try:
        figure(numbered.lesson.predict.kind, written)
    except ValueError as error:
        raise InputError(f"lesson {numbered.number} predict: {error}") from None
    paths.write_for_user(folder / PREDICTION, f"prediction: {_quoted(written)}\n")
    show_answer(numbered, folder)


def show_answer(numbered: NumberedLesson, folder: Path) -> None:
    """Put what is seen into the page, once the student has predicted, or has found the fault of this lab."""
    paths.write_for_user(folder / PAGE, numbered.text(read_record(folder).seed, figures=True))


def shows_answer(folder: Path) -> bool:
    """Whether the page says what is seen: the student has predicted, or has found the fault."""
    try:
        return FIGURES in paths.read_whole(folder / PAGE, LONGEST_PAGE_BYTES).decode(errors="replace")
    except OSError:
        return False


def has_predicted(folder: Path) -> bool:
    return (folder / PREDICTION).is_file()


def read(folder: Path) -> StudentWork:
    """The content of a student's folder. Raises InputError with every problem of the first bad file."""
    record = read_record(folder)
    numbered = lesson(record.lesson)
    if numbered.lesson.find:
        return StudentWork(numbered, record.seed, None, {}, _read_found(numbered, record.seed, folder / ANSWERS))
    prediction = None
    if numbered.lesson.predict is not None and os.path.lexists(folder / PREDICTION):
        written = _read(folder / PREDICTION, _Prediction).prediction
        prediction = _figure(numbered.lesson.predict, written, folder / PREDICTION)
    return StudentWork(numbered, record.seed, prediction, _read_answers(numbered, folder / ANSWERS))


def _read_answers(numbered: NumberedLesson, file: Path) -> dict[str, float]:
    asked = numbered.lesson.answers

    def check(found: _Answers) -> Iterator[Finding]:
        for name, written in found.answers.items():
            if name not in asked:
                yield ("answers", name), f"there is no question of that name; questions are {list_names(list(asked))}"
            elif written is not None:
                try:
                    figure(asked[name].kind, written)
                except ValueError as error:
                    yield ("answers", name), str(error)

    tree = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE)
    found = read_model(tree, str(file), _Answers, check).answers
    return {name: figure(asked[name].kind, written) for name, written in found.items() if written is not None}


def _read_found(numbered: NumberedLesson, seed: str | None, file: Path) -> dict[str, str]:
    hosts = [host.name for host in numbered.plan(seed).hosts]
    known = {WHAT: ("kind of fault here", "kinds", numbered.lesson.find), WHERE: ("host", "hosts", hosts)}

    def check(found: _Answers) -> Iterator[Finding]:
        for name, written in found.answers.items():
            if name not in known:
                yield ("answers", name), f"there is no question of that name; questions are {list_names(list(known))}"
            elif written is not None and written not in known[name][2]:
                what, several, words = known[name]
                yield ("answers", name), unknown(what, several, written, words)

    tree = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE)
    found = read_model(tree, str(file), _Answers, check).answers
    return {name: written for name, written in found.items() if written is not None}


def _figure(asked: Asked, written: str, file: Path) -> float:
    try:
        return figure(asked.kind, written)
    except ValueError as error:
        raise InputError([Problem(str(file), 1, str(error))]) from None


def _read(file: Path, model: type[M]) -> M:
    return read_model(read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE), str(file), model, lambda _model: ())

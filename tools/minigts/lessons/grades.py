"""Grades: a row for each lesson that a student has handed in, judged again from the files of its folder."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from minigts import paths
from minigts.errors import MinigtsError
from minigts.foreign import printable
from minigts.language.spreadsheets import no_formula
from minigts.lessons import evidence_file, folder, verdicts
from minigts.lessons.evidence_file import EvidenceFile
from minigts.lessons.folder import StudentWork
from minigts.lessons.model import value_text
from minigts.lessons.submissions import Handed
from minigts.lessons.verdicts import Evidence, LessonVerdict

PASSED, NOT_YET, BROKEN = "passed", "not yet", "broken"
LONGEST_CELL = 2000
Again = Callable[[StudentWork, EvidenceFile, Mapping[str, bytes]], tuple[LessonVerdict, ...]]
"""A function that repeats a student's work in a new lab, and judges it."""


@dataclass(frozen=True)
class GradeRow:
    """One student and lesson; unknown fields are empty."""

    student: str
    lesson: str = ""
    folder: str = ""
    seed: str = ""
    prediction: str = ""
    came_out: str = ""
    error: str = ""
    verdict: str = BROKEN
    again: str = ""
    wrong: str = ""
    measured: str = ""
    same_as: str = ""
    """The other students with the same evidence of the same lesson."""
    evidence: str = field(default="", repr=False)
    """The digest of its evidence, which is no column."""

    @property
    def all_of_same(self) -> str:
        """The student and those of `same_as`, sorted."""
        return ", ".join(sorted({self.student, *self.same_as.split(", ")} - {""}))

    @property
    def passed(self) -> bool:
        """Whether the work as handed in passes, and its repetition, too, if there was one."""
        return self.verdict == PASSED and self.again in ("", PASSED)


COLUMNS = tuple(each.name for each in fields(GradeRow) if each.name != "evidence")


def rows(handed: Handed, seeded: bool, again: Again | None = None) -> Iterator[GradeRow]:
    """The rows of one student. With `seeded` the seed has to be the name under which the work was handed in; `again`
    repeats the work."""
    if handed.problem is not None:
        yield GradeRow(handed.student, wrong=handed.problem)
    for place, files in handed.folders.items():
        yield _row(handed.student, place, files, seeded, again)


def _row(student: str, place: str, files: Mapping[str, bytes], seeded: bool, again: Again | None) -> GradeRow:
    with tempfile.TemporaryDirectory(prefix="minigts-grade-") as temporary:
        directory = Path(temporary)
        for name, content in files.items():  # `submissions` lets only names of lessons' files through
            paths.write_for_user(directory / name, content)
        try:
            work = folder.read(directory)
            measured = evidence_file.read(directory) if evidence_file.FILE in files else None
        except MinigtsError as error:
            return GradeRow(student, folder=place, wrong=str(error).replace(f"{directory}{os.sep}", ""))
    none = (
        f"there is no {evidence_file.FILE}: minigts lesson {work.numbered.number} check writes it while the lab is up"
    )
    evidence = Evidence({}, (none,)) if measured is None else measured.evidence(work)
    judged = verdicts.judge(work, evidence)
    if seeded and work.seed != student:
        judged = (
            *judged,
            LessonVerdict("seed", False, f"has the figures of {work.seed or 'nobody'}, not of {student}"),
        )
    anew = None if again is None or measured is None or work.numbered.lesson.find else again(work, measured, files)
    wrong = [*_wrong(judged), *(f"again: {each}" for each in _wrong(anew or ()))]
    came_out = verdicts.came_out(work, evidence)
    return GradeRow(
        student=student,
        lesson=str(work.numbered.number),
        folder=place,
        seed=work.seed or "",
        prediction=_in_words(work, work.prediction),
        came_out=_in_words(work, came_out),
        error=_error(work, came_out),
        verdict=_word(judged),
        again="" if anew is None else _word(anew),
        wrong="; ".join(wrong),
        measured="" if measured is None else measured.measured.isoformat(" ", "seconds"),
        evidence="" if measured is None else measured.digest,
    )


def name_twins(graded: Sequence[GradeRow]) -> list[GradeRow]:
    """The rows, each with the other students who have handed in the same evidence of that lesson. A check writes the
    microsecond of its measuring, so the same evidence is that of one check."""
    having: dict[tuple[str, str], list[str]] = {}
    for row in graded:
        if row.evidence:
            having.setdefault((row.lesson, row.evidence), []).append(row.student)
    return [
        replace(row, same_as=", ".join(sorted(set(having.get((row.lesson, row.evidence), ())) - {row.student})))
        for row in graded
    ]


def _wrong(judged: tuple[LessonVerdict, ...]) -> list[str]:
    return [f"{each.name}: {each.says}" for each in judged if each.ok is False]


def _word(judged: tuple[LessonVerdict, ...]) -> str:
    return PASSED if verdicts.have_passed(judged) else NOT_YET


def _in_words(work: StudentWork, value: float | None) -> str:
    asked = work.numbered.lesson.predict
    return "" if value is None or asked is None else value_text(asked.kind, value)


def _error(work: StudentWork, came_out: float | None) -> str:
    """`32.5 ms too low`"""
    if work.prediction is None or came_out is None:
        return ""
    off = work.prediction - came_out
    return "0" if off == 0 else f"{_in_words(work, abs(off))} too {'high' if off > 0 else 'low'}"


def cell(text: str) -> str:
    """A text as a table's cell: one line without control characters."""
    return printable(" ".join(text.split()))[:LONGEST_CELL]


def cells(row: GradeRow) -> tuple[str, ...]:
    return tuple(cell(getattr(row, name)) for name in COLUMNS)


def csv_text(graded: Iterable[GradeRow]) -> str:
    """The rows as CSV by RFC 4180, but with LF as line ends. Every field is quoted, and no spreadsheet reads one as a
    formula, whatever separator it uses."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(map(no_formula, cells(row)) for row in graded)
    return target.getvalue()

"""Judges a student's figures, and explains wrong ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Template

from minigts.language.formula import formula
from minigts.lessons.folder import WHAT, WHERE, StudentWork
from minigts.lessons.model import Asked, RightValues, value_text

MENDED = "mended"
"""The figure of a lab whose fault is to be mended: 1 if it has no effect any more, else 0."""
HINT_SHARE = 0.02
"""A hint fits a figure that differs by at most this share, or by the tolerance of a right one."""


@dataclass(frozen=True)
class LessonVerdict:
    """One line of a check. `ok` is None for a figure that is not judged, such as a prediction, which may be wrong."""

    name: str
    ok: bool | None
    says: str


@dataclass(frozen=True)
class Evidence:
    """The measurements of a lab: figures by name, and in `lacking` the reasons for missing ones."""

    figures: Mapping[str, float]
    lacking: tuple[str, ...] = ()


def came_out(work: StudentWork, evidence: Evidence) -> float | None:
    """The figure that was to be predicted, as it came out; None where it is a range, or no known figure says it."""
    asked = work.numbered.lesson.predict
    exactly = None if asked is None else asked.exactly
    try:
        return None if exactly is None else formula(exactly).value(_known(work, evidence))
    except (KeyError, ValueError):
        return None


def _known(work: StudentWork, evidence: Evidence) -> Mapping[str, float]:
    return {**evidence.figures, **work.answers, **work.numbered.figures(work.seed)}


def judge(work: StudentWork, evidence: Evidence) -> tuple[LessonVerdict, ...]:
    """The verdicts on the prediction, every answer, and every check of the lab."""
    lesson = work.numbered.lesson
    if lesson.find:
        return (*_of_fault(work, evidence), *(LessonVerdict("lab", False, why) for why in evidence.lacking))
    known = _known(work, evidence)
    drawn = work.numbered.draw_values(work.seed)
    found = [] if lesson.predict is None else [_of_prediction(work, lesson.predict, known, drawn)]
    for name, asked in lesson.answers.items():
        given = work.answers.get(name)
        found.append(
            LessonVerdict(name, False, "no answer in answers.yaml yet")
            if given is None
            else _of(name, asked, given, known, drawn)
        )
    for name, wanted in lesson.checks.items():
        shown = evidence.figures.get(name)
        found.append(
            LessonVerdict(name, False, "not measured") if shown is None else _of(name, wanted, shown, known, drawn)
        )
    return (*found, *(LessonVerdict("lab", False, why) for why in evidence.lacking))


def have_passed(verdicts: tuple[LessonVerdict, ...]) -> bool:
    return all(each.ok is not False for each in verdicts)


def _of_fault(work: StudentWork, evidence: Evidence) -> Iterator[LessonVerdict]:
    """Whether a fault was found and mended."""
    fault = work.numbered.fault(work.seed)
    for name, right in ((WHAT, (fault.kind.name,)), (WHERE, fault.hosts)):
        given = work.found.get(name)
        if given is None:
            yield LessonVerdict(name, False, "no answer in answers.yaml yet")
        else:
            yield LessonVerdict(name, given in right, given if given in right else f"{given}: it is not that")
    mended = evidence.figures.get(MENDED)
    if mended is not None:
        yield LessonVerdict(
            MENDED, mended == 1, "the fault has no effect any more" if mended == 1 else "it is still broken"
        )
    elif not evidence.lacking:
        yield LessonVerdict(MENDED, False, "not measured")


def _of_prediction(
    work: StudentWork, asked: Asked, known: Mapping[str, float], drawn: Mapping[str, str]
) -> LessonVerdict:
    if work.prediction is None:
        command = f"minigts lesson {work.numbered.number} predict FIGURE"
        return LessonVerdict("prediction", False, f"predict first: {command}")
    judged = _of("prediction", asked, work.prediction, known, drawn)
    if judged.ok is None:
        return judged
    if judged.ok:
        return LessonVerdict("prediction", None, f"{value_text(asked.kind, work.prediction)}: as it came out")
    return LessonVerdict("prediction", None, judged.says)


def _of(
    name: str, wanted: RightValues, given: float, known: Mapping[str, float], drawn: Mapping[str, str]
) -> LessonVerdict:
    """The verdict on one figure. The texts of a lesson have the values that were drawn for this student."""
    told = value_text(wanted.kind, given)
    try:
        within = formula(wanted.within).value(known)
        if _fits(wanted, given, within, known):
            return LessonVerdict(name, True, told)
        for hint in wanted.hints:
            near = formula(hint.near).value(known)
            if abs(given - near) <= max(within, HINT_SHARE * abs(near)):
                return LessonVerdict(name, False, f"{told}: {Template(hint.says).substitute(drawn)}")
    except KeyError as missing:
        return LessonVerdict(name, None, f"{told}: not judged, since {missing.args[0]} is not known")
    except ValueError as error:
        return LessonVerdict(name, False, f"{told}: cannot be judged: {error}")
    return LessonVerdict(name, False, f"{told}: {Template(wanted.otherwise).substitute(drawn)}")


def _fits(wanted: RightValues, given: float, within: float, known: Mapping[str, float]) -> bool:
    if wanted.exactly is not None:
        return abs(given - formula(wanted.exactly).value(known)) <= within
    least = None if wanted.least is None else formula(wanted.least).value(known)
    most = None if wanted.most is None else formula(wanted.most).value(known)
    return (least is None or given >= least - within) and (most is None or given <= most + within)

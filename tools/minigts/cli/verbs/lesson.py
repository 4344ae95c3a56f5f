"""`minigts lesson`: a lesson's steps."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console, options
from minigts.cli.verbs import CLASSROOM, Verb
from minigts.cli.views import tables
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.arena.families import Incident
    from minigts.lessons.model import NumberedLesson
    from minigts.lessons.verdicts import LessonVerdict

verb = Verb(CLASSROOM, 420)


class Doing(StrEnum):
    """The steps of a lesson."""

    START = "start"
    PREDICT = "predict"
    BREAK = "break"
    CHECK = "check"


def _lesson_name(written: str) -> str:
    """A lesson's number, or an incident's name, as it is typed."""
    if written.isdecimal() or "/" in written:
        return written
    raise typer.BadParameter(f"{written[:40]} is no number of a lesson: the number comes first, as in lesson 1 start")


@verb.command()
def lesson(
    named: Annotated[
        str | None,
        typer.Argument(
            metavar="[N]",
            help="The lesson's number; or an incident's name, as routes/7 (minigts arena list).",
            show_default=False,
            parser=_lesson_name,
        ),
    ] = None,
    doing: Annotated[Doing | None, typer.Argument(help="The step.", show_default=False)] = None,
    figure: Annotated[
        str | None,
        typer.Argument(
            metavar="[FIGURE]", help="The predicted figure with its unit, such as 52.3ms.", show_default=False
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            metavar="STUDENT",
            help="start: give this student other figures than the rest. break of an incident: who plays.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The student's folder. Default: the working directory, or lesson-N in it."),
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option(
            "--lab",
            metavar="NAME",
            help="check: the lab to measure. Default: lesson-N.",
            autocompletion=completion.labs,
        ),
    ] = None,
    lessons: options.Lessons = None,
) -> None:
    """Lessons for a class: predict a figure, then measure it. Without a number, list them.

    start writes a folder with a page to read, a topology and a file for answers. predict commits a figure, once. check
    measures the lab that is up, judges the folder (exit 1 when something is not right yet), and puts into the folder
    what a teacher grades. An incident of the arena is a lesson, too, with the steps start, break and check.

    Example:  minigts lesson 1 start

    Example:  minigts lesson 1 predict 52.3ms

    Example:  minigts lesson --lessons ~/course 50 start
    """
    if lessons is not None:
        from minigts.lessons import model

        model.choose(lessons)
    if named is not None and "/" in named:
        _incident(named, doing, folder, seed, lab)
        return
    number = None if named is None else int(named)
    if number is None:
        _list()
    elif doing is None:
        _tell(number)
    elif doing is Doing.START:
        _start(number, folder, seed)
    elif doing is Doing.PREDICT:
        _predict(number, folder, figure)
    elif doing is Doing.BREAK:
        _break(number, folder, lab)
    else:
        _check(number, folder, lab)


def _incident(name: str, doing: Doing | None, folder: Path | None, student: str | None, lab: str | None) -> None:
    """The steps of an incident as a lesson."""
    from minigts import lab as labs
    from minigts.arena import exercise, families, stage
    from minigts.lessons.folder import PAGE

    drawn = families.draw(*families.parse(name))
    if doing is Doing.START:
        into = folder or Path(drawn.lab)
        names = exercise.start(drawn, into)
        console.note(f"in {into}: {', '.join(names)}; go on with")
        for line in (f"cd {shlex.quote(str(into))}", f"less {PAGE}"):
            console.note(f"  {line}")
    elif doing is Doing.BREAK:
        with console.progress() as say:
            say(f"breaking lab {lab or drawn.lab}")
            record = stage.make(labs.open_lab(lab or drawn.lab), drawn, student or "student", say)
        typer.echo(record.ticket)
    elif doing is Doing.CHECK:
        _check_incident(drawn, folder, lab or drawn.lab)
    else:
        raise InputError(f"lesson {name}: its steps are start, break and check")


def _check_incident(drawn: Incident, folder: Path | None, lab: str) -> None:
    from minigts import lab as labs
    from minigts.arena import exercise
    from minigts.arena.play import Play

    place = exercise.find(drawn, folder)
    given, play = exercise.read_answer(place), Play(labs.open_lab(lab))
    with console.progress() as say:
        say("asking what users would complain of")
        whole = play.judge(given)
    for line in exercise.verdict_lines(whole.end.score):
        typer.echo(line)
    if whole.end.score.solved:
        play.close(whole)
        console.note(f"your transcript is {exercise.keep(place, whole, drawn)}")
    raise typer.Exit(0 if whole.end.score.solved else 1)


def _list() -> None:
    from minigts.lessons import model

    rows = ((str(each.number), each.lesson.title, each.lesson.about) for each in model.all_lessons())
    tables.show_table("lessons", (">", "title", "about"), rows)
    console.note("begin with: minigts lesson 1 start")
    console.note("incidents are lessons, too: minigts arena list, and then: minigts lesson routes/7 start")


def _start_of(found: NumberedLesson) -> str:
    from minigts.lessons import model

    place = found.page.parent
    known = "" if place == model.own_folder() else f" --lessons {shlex.quote(str(place))}"
    return f"minigts lesson{known} {found.number} start"


def _tell(number: int) -> None:
    from minigts.lessons import model

    found = model.lesson(number)
    typer.echo(f"Lesson {number}: {found.lesson.title}. {found.lesson.about}\n\n{_asked(found)}")
    console.note(f"begin with: {_start_of(found)}")


def _asked(found: NumberedLesson) -> str:
    predict = found.lesson.predict
    return "To find: what is broken, and on which host" if predict is None else f"To predict: {predict.ask}"


def _start(number: int, folder: Path | None, seed: str | None) -> None:
    from minigts.lessons import folder as folders
    from minigts.lessons import model

    found = model.lesson(number)
    into = folder or Path(found.lab)
    names = folders.start(found, into, seed)
    typer.echo(f"Lesson {number}: {found.lesson.title}\n\n{_asked(found)}\n")
    console.note(f"in {into}: {', '.join(names)}; go on with")
    program, finds = folders.program(into), bool(found.lesson.find)
    up = f"{program} up {folders.TOPOLOGY}"
    for line in (
        f"cd {shlex.quote(str(into))}",
        f"less {folders.PAGE}",
        up if finds else f"{program} lesson {number} predict FIGURE",
        f"{program} lesson {number} break" if finds else up,
        f"{program} lesson {number} check",
    ):
        console.note(f"  {line}")


def _predict(number: int, folder: Path | None, figure: str | None) -> None:
    from minigts.lessons import folder as folders
    from minigts.lessons import model

    found = model.lesson(number)
    if figure is None and found.lesson.predict is not None:
        raise InputError(f"lesson {number} predict: name a figure. {found.lesson.predict.ask}")
    folders.predict(found, folders.find(found, folder), figure or "")
    console.note(f"{figure} is committed; now measure: minigts up {folders.TOPOLOGY}")


def _break(number: int, folder: Path | None, name: str | None) -> None:
    from minigts import lab as labs
    from minigts.lessons import breaks, evidence, model
    from minigts.lessons import folder as folders

    found = model.lesson(number)
    if not found.lesson.find:
        raise InputError(f"lesson {number} has no fault to find; any lab is broken by: minigts break --seed NAME")
    work = folders.read(folders.find(found, folder))
    lab = labs.open_lab(name or found.lab)
    if why := evidence.another(lab.plan, work):
        raise InputError(why)
    with console.progress() as say:
        say(f"breaking lab {lab.name}")
        breaks.break_(lab, work.seed or "", found.lesson.find)
    console.note(
        f"lab {lab.name} is broken: find what it is, and on which host; write it into {folders.ANSWERS}, mend it,"
    )
    console.note(f"and see whether all is right: minigts lesson {number} check")


def _check(number: int, folder: Path | None, name: str | None) -> None:
    from minigts import lab as labs
    from minigts.lessons import evidence, evidence_file, model, verdicts
    from minigts.lessons import folder as folders

    found = model.lesson(number)
    place = folders.find(found, folder)
    work = folders.read(place)
    name = name or found.lab
    shown = verdicts.Evidence({}, (f"lab {name} is not up: minigts up {folders.TOPOLOGY}",))
    if name in {each.name for each in labs.running(labs.all_labs())}:
        with console.progress() as say:
            say(f"measuring lab {name}")
            lab = labs.open_lab(name)
            shown = evidence.measure(lab, work)
            evidence_file.write(place, lab, shown)
    judged = verdicts.judge(work, shown)
    for each in judged:
        typer.echo(_line(each))
    right = verdicts.have_passed(judged)
    if right and found.lesson.find:
        folders.show_answer(found, place)
    typer.echo(f"lesson {number}: {'passed' if right else 'not yet'}")
    raise typer.Exit(0 if right else 1)


def _line(verdict: LessonVerdict) -> str:
    mark = {True: "ok  ", False: "no  ", None: "    "}[verdict.ok]
    return f"{mark}{verdict.name}: {verdict.says}"

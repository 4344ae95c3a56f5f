"""The verbs of a classroom. What a verb needs is imported inside it."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import known, screen, tables
from minigts.cli.app import app
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lessons.verdicts import Verdict

CLASSROOM = "Lessons"


class Doing(StrEnum):
    """What is done with a lesson."""

    START = "start"
    PREDICT = "predict"
    CHECK = "check"


@app.command(rich_help_panel=CLASSROOM)
def lesson(
    number: Annotated[int | None, typer.Argument(metavar="[N]", help="Which one.", show_default=False)] = None,
    doing: Annotated[Doing | None, typer.Argument(help="What to do with it.", show_default=False)] = None,
    figure: Annotated[
        str | None, typer.Argument(metavar="[FIGURE]", help="To predict, with its unit: 52.3ms.", show_default=False)
    ] = None,
    seed: Annotated[
        str | None, typer.Option(metavar="STUDENT", help="start: figures of their own for each student.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The student's folder; else lesson-N, or where you are.")
    ] = None,
    lab: Annotated[
        str | None, typer.Option("--lab", metavar="NAME", help="check: another lab.", autocompletion=known.labs)
    ] = None,
) -> None:
    """Lessons for a class: predict a figure, then measure it. Without a number, list them.

    start writes a folder with a page to read, a topology and a file for answers; predict commits a figure, once; check
    measures the lab that is up, judges the folder (exit 1 when something is not right yet), and leaves in it what a
    teacher grades.

    Example:  minigts lesson 1 start

    Example:  minigts lesson 1 predict 52.3ms
    """
    if number is None:
        _list()
    elif doing is None:
        _tell(number)
    elif doing is Doing.START:
        _start(number, folder, seed)
    elif doing is Doing.PREDICT:
        _predict(number, folder, figure)
    else:
        _check(number, folder, lab)


def _list() -> None:
    from minigts.lessons import model

    rows = ((str(each.number), each.lesson.title, each.lesson.about) for each in model.all_lessons())
    tables.show_table("lessons", (">", "title", "about"), rows)
    screen.note("begin with: minigts lesson 1 start")


def _tell(number: int) -> None:
    from minigts.lessons import model

    found = model.lesson(number)
    typer.echo(f"Lesson {number}: {found.lesson.title}. {found.lesson.about}\n\nTo predict: {found.lesson.predict.ask}")
    screen.note(f"begin with: minigts lesson {number} start")


def _start(number: int, folder: Path | None, seed: str | None) -> None:
    from minigts.lessons import folder as folders
    from minigts.lessons import model

    found = model.lesson(number)
    into = folder or Path(found.lab)
    names = folders.start(found, into, seed)
    typer.echo(f"Lesson {number}: {found.lesson.title}\n\nTo predict: {found.lesson.predict.ask}\n")
    screen.note(f"in {into}: {', '.join(names)}; go on with")
    for line in (
        f"cd {shlex.quote(str(into))}",
        f"less {folders.PAGE}",
        f"minigts lesson {number} predict FIGURE",
        f"minigts up {folders.TOPOLOGY}",
        f"minigts lesson {number} check",
    ):
        screen.note(f"  {line}")


def _predict(number: int, folder: Path | None, figure: str | None) -> None:
    from minigts.lessons import folder as folders
    from minigts.lessons import model

    found = model.lesson(number)
    if figure is None:
        raise InputError(f"lesson {number} predict: name a figure. {found.lesson.predict.ask}")
    folders.predict(found, folders.find(found, folder), figure)
    screen.note(f"{figure} is committed; now measure: minigts up {folders.TOPOLOGY}")


def _check(number: int, folder: Path | None, name: str | None) -> None:
    from minigts import lab as labs
    from minigts.lessons import evidence, kept, model, verdicts
    from minigts.lessons import folder as folders

    found = model.lesson(number)
    place = folders.find(found, folder)
    work = folders.read(place)
    name = name or found.lab
    shown = verdicts.Evidence({}, (f"lab {name} is not up: minigts up {folders.TOPOLOGY}",))
    if name in {each.name for each in labs.running(labs.all_labs())}:
        with screen.progress() as say:
            say(f"measuring lab {name}")
            lab = labs.open_lab(name)
            shown = evidence.measure(lab, work)
            kept.write(place, lab, shown)
    judged = verdicts.judge(work, shown)
    for each in judged:
        typer.echo(_line(each))
    right = verdicts.passed(judged)
    typer.echo(f"lesson {number}: {'passed' if right else 'not yet'}")
    raise typer.Exit(0 if right else 1)


@app.command(rich_help_panel=CLASSROOM)
def grade(
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS", help="A folder: in it of each student a folder or an archive.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write a table for a spreadsheet, as CSV.")
    ] = None,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="Each student's seed has to be the name of what was handed in.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Do each one's work anew in a lab, and judge that, too.")
    ] = False,
) -> None:
    """Grade what students hand in: folders of lessons, or archives of them (.zip, .tar, .tar.gz).

    Verdicts are worked out from the answers and from what the student's check has measured; what is measured may be
    invented, and --again measures it here. Nothing that is handed in runs on this machine outside a lab.

    Example:  minigts grade submissions -o grades.csv
    """
    from functools import partial

    from minigts import paths
    from minigts.lessons import again as anew
    from minigts.lessons import grades
    from minigts.lessons import submissions as handed_in

    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output.parent}: no such folder; -o names a file in one that is there")
    found: list[grades.Row] = []
    with screen.progress() as say:
        for handed in handed_in.students(submissions):
            if again:
                say(f"doing the work of {handed.student} anew")
            found += grades.rows(handed, seeded, partial(anew.do, say=lambda _: None) if again else None)
    if output is not None:
        paths.write_for_user(output, grades.to_csv(found))
    shown = ("student", "lesson", "prediction", "came_out", "error", "verdict", *(["again"] if again else []), "wrong")
    places = [grades.COLUMNS.index(name) for name in shown]
    rows = ([grades.cells(row)[place] for place in places] for row in found)
    tables.show_table("grades", [name.replace("_", " ") for name in shown], rows)
    passed = sum(row.passed for row in found)
    screen.note(f"{passed} of {len(found)} passed" + ("" if output is None else f"; {output} has all columns"))


def _line(verdict: Verdict) -> str:
    mark = {True: "ok  ", False: "no  ", None: "    "}[verdict.ok]
    return f"{mark}{verdict.name}: {verdict.says}"

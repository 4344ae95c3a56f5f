"""`minigts grade`: grade what students hand in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console, options
from minigts.cli.verbs import CLASSROOM, Verb
from minigts.cli.views import tables
from minigts.errors import InputError

verb = Verb(CLASSROOM, 430)


@verb.command()
def grade(
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS", help="A folder with a folder or an archive for each student.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write all columns as CSV, for a spreadsheet.")
    ] = None,
    seeded: Annotated[
        bool,
        typer.Option("--seeded", help="Each student's seed, or who has played, has to be the name of the submission."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat each student's work and calls in a lab, and judge that, too.")
    ] = False,
    lessons: options.Lessons = None,
) -> None:
    """Grade what students hand in, lessons and transcripts of incidents: folders, or archives (.zip, .tar, .tar.gz).

    Verdicts follow from the answers and from the measurements of the student's check. A student could invent
    measurements, and a transcript; --again measures here, and plays the transcript's calls. Nothing that is handed in
    runs on this machine outside a lab.

    Example:  minigts grade submissions -o grades.csv
    """
    from functools import partial

    from minigts import paths
    from minigts.arena import handed as incidents
    from minigts.lessons import grades, model
    from minigts.lessons import regrade as anew
    from minigts.lessons import submissions as handed_in

    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output.parent}: no such folder; -o names a file in an existing folder")
    if lessons is not None:
        model.choose(lessons)
    found: list[grades.GradeRow] = []
    with console.progress() as say:
        for handed in handed_in.students(submissions):
            if again:
                say(f"repeating the work of {handed.student}")
            found += grades.rows(handed, seeded, partial(anew.regrade, say=lambda _: None) if again else None)
            found += incidents.rows(handed, seeded, incidents.replay if again else None)
    found = grades.name_twins(found)
    if output is not None:
        paths.write_for_user(output, grades.csv_text(found))
    more = [*(["again"] if again else []), *(["same_as"] if any(row.same_as for row in found) else [])]
    shown = ("student", "lesson", "prediction", "came_out", "error", "verdict", *more, "wrong")
    places = [grades.COLUMNS.index(name) for name in shown]
    rows = ([grades.cells(row)[place] for place in places] for row in found)
    tables.show_table("grades", [name.replace("_", " ") for name in shown], rows)
    for lesson, names in dict.fromkeys((row.lesson, row.all_of_same) for row in found if row.same_as):
        if "/" in lesson:
            console.note(f"incident {lesson}: {names} have made the same calls in the same order")
        else:
            console.note(f"lesson {lesson}: {names} have handed in the evidence of one check, to the microsecond")
    if not again and any("/" in row.lesson for row in found):
        console.note("incidents are graded by what their transcripts say; --again plays them, and believes nothing")
    passed = sum(row.passed for row in found)
    console.note(f"{passed} of {len(found)} passed" + ("" if output is None else f"; {output} has all columns"))

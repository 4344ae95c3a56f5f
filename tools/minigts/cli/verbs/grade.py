"""`minigts grade`: what students hand in, judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import CLASSROOM, Verb
from minigts.cli.views import tables
from minigts.errors import InputError

verb = Verb(CLASSROOM, 430)


@verb.command()
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
    from minigts.lessons import grades
    from minigts.lessons import regrade as anew
    from minigts.lessons import submissions as handed_in

    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output.parent}: no such folder; -o names a file in one that is there")
    found: list[grades.Row] = []
    with console.progress() as say:
        for handed in handed_in.students(submissions):
            if again:
                say(f"doing the work of {handed.student} anew")
            found += grades.rows(handed, seeded, partial(anew.regrade, say=lambda _: None) if again else None)
    if output is not None:
        paths.write_for_user(output, grades.to_csv(found))
    shown = ("student", "lesson", "prediction", "came_out", "error", "verdict", *(["again"] if again else []), "wrong")
    places = [grades.COLUMNS.index(name) for name in shown]
    rows = ([grades.cells(row)[place] for place in places] for row in found)
    tables.show_table("grades", [name.replace("_", " ") for name in shown], rows)
    passed = sum(row.passed for row in found)
    console.note(f"{passed} of {len(found)} passed" + ("" if output is None else f"; {output} has all columns"))

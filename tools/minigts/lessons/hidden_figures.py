"""Hides the figures of a lesson's lab until the student has predicted one, and its fault until the student found it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.errors import MinigtsError

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lessons.model import NumberedLesson

_LAB = re.compile(r"lesson-([0-9]{1,2})")


def why_hidden(topology: str, beside: Path | None = None) -> str | None:
    """A sentence on why expected and measured figures of the topology of that name are hidden; None: they are shown.

    A prediction is searched in the folder `beside` (the topology file's), the working directory, and its folder
    lesson-N.
    """
    numbered = _lesson_of(topology)
    if numbered is None or numbered.lesson.predict is None:
        return None
    from minigts.lessons import folder  # noqa: PLC0415 - only lessons' labs need it

    places = (*([] if beside is None else [beside]), Path(), Path(numbered.lab))
    if any(_is_so_in(place, numbered.number, folder.has_predicted) for place in places):
        return None
    return (
        f"figures are hidden until you predict one: minigts lesson {numbered.number} predict FIGURE; "
        "after that, run this command in the lesson's folder"
    )


def why_fault_hidden(lab: Lab) -> str | None:
    """A sentence on why the fault of a lesson's or an incident's lab is not named by `check` and `explain`; None:
    nothing is hidden."""
    from minigts.lessons.breaks import FILE, INCIDENT  # noqa: PLC0415 - as above

    if (lab.rundir / INCIDENT).exists():
        return (
            "what is wrong is yours to find, on the hosts; once it has its answer (minigts arena answer), all is shown"
        )
    numbered = _lesson_of(lab.plan.name)
    if numbered is None or not numbered.lesson.find:
        return None
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    places = (Path(), Path(numbered.lab))
    is_found = any(_is_so_in(place, numbered.number, folder.shows_answer) for place in places)
    if is_found or not (lab.rundir / FILE).exists():
        return None
    return (
        f"the fault is yours to find, on the hosts: page.md says with what; minigts lesson {numbered.number} check "
        "says whether it is found and mended, and from then on check and explain show all"
    )


def _lesson_of(topology: str) -> NumberedLesson | None:
    """The lesson whose topology has that name, if there is one."""
    named = _LAB.fullmatch(topology)
    if named is None:
        return None
    from minigts.lessons.model import lesson  # noqa: PLC0415 - as above

    try:
        return lesson(int(named[1]))
    except MinigtsError:
        return None


def _is_so_in(place: Path, number: int, what: Callable[[Path], bool]) -> bool:
    """Whether a place is the folder of that lesson, and `what` is so of it."""
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    try:
        return what(place) and folder.read_record(place).lesson == number
    except MinigtsError:
        return False

"""Hides the figures of a lesson's lab until the student has predicted one, and its fault until the student found it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from minigts.errors import MinigtsError

if TYPE_CHECKING:
    from minigts.lab import Lab

_LAB = re.compile(r"lesson-([0-9]{1,2})")


def why_hidden(topology: str, beside: Path | None = None) -> str | None:
    """A sentence on why expected and measured figures of the topology of that name are hidden; None: they are shown.

    A prediction is searched in the folder `beside` (the topology file's), the working directory, and its folder
    lesson-N.
    """
    named = _LAB.fullmatch(topology)
    if named is None:
        return None
    from minigts.lessons.model import lesson  # noqa: PLC0415 - only lessons' plans need it

    try:
        numbered = lesson(int(named[1]))
    except MinigtsError:
        return None
    if numbered.lesson.predict is None:
        return None
    places = (*([] if beside is None else [beside]), Path(), Path(numbered.lab))
    if any(_predicted(place, numbered.number) for place in places):
        return None
    return (
        f"figures are hidden until you predict one: minigts lesson {numbered.number} predict FIGURE; "
        "after that, run this command in the lesson's folder"
    )


def why_fault_hidden(lab: Lab) -> str | None:
    """A sentence on why the fault of a lesson's lab is not named by `check` and `explain`; None: nothing is hidden."""
    named = _LAB.fullmatch(lab.plan.name)
    if named is None:
        return None
    from minigts.lessons import breaks  # noqa: PLC0415 - as above
    from minigts.lessons.model import lesson  # noqa: PLC0415

    if not (lab.rundir / breaks.FILE).exists():
        return None
    try:
        numbered = lesson(int(named[1]))
    except MinigtsError:
        return None
    if not numbered.lesson.find or any(_shows(place, numbered.number) for place in (Path(), Path(numbered.lab))):
        return None
    return (
        f"the fault is yours to find, on the hosts: page.md says with what; minigts lesson {numbered.number} check "
        "says whether it is found and mended, and from then on check and explain show all"
    )


def _shows(place: Path, number: int) -> bool:
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    try:
        return folder.shows_answer(place) and folder.read_record(place).lesson == number
    except MinigtsError:
        return False


def _predicted(place: Path, number: int) -> bool:
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    try:
        return folder.has_predicted(place) and folder.read_record(place).lesson == number
    except MinigtsError:
        return False

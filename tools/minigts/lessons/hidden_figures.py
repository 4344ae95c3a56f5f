"""Hides the figures of a lesson's lab until the student has predicted one."""

from __future__ import annotations

import re
from pathlib import Path

from minigts.errors import MinigtsError

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


def _predicted(place: Path, number: int) -> bool:
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    try:
        return folder.has_predicted(place) and folder.read_record(place).lesson == number
    except MinigtsError:
        return False

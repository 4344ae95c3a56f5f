"""Predict, then measure: what is not shown of a lesson's lab until its student has committed a figure."""

from __future__ import annotations

import re
from pathlib import Path

from minigts.errors import MinigtsError

_LAB = re.compile(r"lesson-([0-9]{1,2})")


def why_hidden(topology: str, beside: Path | None = None) -> str | None:
    """Why expected and measured figures of a topology of that name are not shown now, a sentence; None when they are.

    A prediction is looked for `beside` the topology's file, in the working directory, and in its folder lesson-N.
    """
    named = _LAB.fullmatch(topology)
    return None if named is None else _why_not_predicted(int(named[1]), beside)


def _why_not_predicted(number: int, beside: Path | None) -> str | None:
    from minigts.lessons.model import lesson  # noqa: PLC0415 - a lab of no lesson comes up without it

    try:
        numbered = lesson(number)
    except MinigtsError:
        return None
    places = (*([] if beside is None else [beside]), Path(), Path(numbered.lab))
    if any(_predicted(place, numbered.number) for place in places):
        return None
    return (
        f"predict first, then figures are shown here (look from the lesson's folder): "
        f"minigts lesson {numbered.number} predict FIGURE"
    )


def _predicted(place: Path, number: int) -> bool:
    from minigts.lessons import folder  # noqa: PLC0415 - as above

    try:
        return folder.has_predicted(place) and folder.read_record(place).lesson == number
    except MinigtsError:
        return False

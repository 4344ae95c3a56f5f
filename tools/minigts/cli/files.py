"""The file that a user names: one in the working directory, or one that minigts brings."""

from __future__ import annotations

import os
from pathlib import Path

from minigts.cli import console
from minigts.errors import InputError, Problem

TOPOLOGIES = "topologies"
EXPERIMENTS = "experiments"


def find_file(given: Path, folder: str) -> Path:
    """The path `given` if it exists, otherwise minigts' own file `FOLDER/NAME` with a note on stderr; `given` may be
    only `NAME`.

    Raises InputError when there is neither.
    """
    from minigts import paths

    if os.path.lexists(given):
        return given
    own = paths.own_file(given, folder)
    if own is None:
        raise InputError(
            [
                Problem(
                    str(given),
                    0,
                    "no such file, and minigts brings none of that name; minigts examples lists its files",
                )
            ]
        )
    console.note(f"minigts: there is no {given} here, so it is minigts' own: {own}")
    return own

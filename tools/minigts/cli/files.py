"""Which file a user means: the one in the working directory, else minigts' own of that name."""

from __future__ import annotations

import os
from pathlib import Path

from minigts.cli import console
from minigts.errors import InputError, Problem

TOPOLOGIES = "topologies"
EXPERIMENTS = "experiments"


def found(given: Path, folder: str) -> Path:
    """`given`, if it is there; else minigts' own `FOLDER/NAME`, which may be given as only `NAME`, and which is said.

    Raises InputError when there is neither.
    """
    from minigts import paths

    if os.path.lexists(given):
        return given
    own = paths.own_file(given, folder)
    if own is None:
        raise InputError(
            [Problem(str(given), 0, "no such file, and minigts brings none; minigts examples lists those")]
        )
    console.note(f"minigts: there is no {given} here, so it is minigts' own: {own}")
    return own

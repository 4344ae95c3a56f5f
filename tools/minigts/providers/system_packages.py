"""The system packages that a provider's folder lists, and which of them are here.

A folder's file `system-packages` has a line for each: a program (or the path of a file, with wildcards), the apt
package that has it, and `user` where only those without root need it. The launcher reads the same files, and installs
what is missing. They are no Python, since it does so before there is any.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

NAME = "system-packages"


@dataclass(frozen=True)
class Package:
    """`present` goes by its program or file, not by the package system."""

    name: str
    present: bool
    program: str = ""
    """Or the path of a file."""


def of(folder: Path, *, root: bool) -> tuple[Package, ...]:
    """What the folder's file lists, for root or for another user."""
    text = (folder / NAME).read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return tuple(Package(row[1], present(row[0]), row[0]) for row in rows if row[2:] != ["user"] or not root)


def present(program: str) -> bool:
    """Whether a program or, by an absolute path with wildcards, a file is here."""
    if program.startswith("/"):
        return any(Path("/").glob(program[1:]))
    # Some lie where a plain user's PATH does not look.
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None

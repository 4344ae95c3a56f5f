"""The system packages that a provider's folder lists, and which of them are here.

A folder's file `system-packages` has a line for each: a program (or the path of a file, with wildcards), the apt
package that has it, and `user` where only those without root need it. The launcher reads the same files, and installs
what is missing. They are no Python, since it does so before there is any.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.machine import shell

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


def lacking(providers: Iterable[str]) -> list[str]:
    """The packages that these providers take, by name, and this machine has not."""
    folders = [Path(__file__).parent / provider for provider in dict.fromkeys(providers)]
    listed = [each for folder in folders if (folder / NAME).exists() for each in of(folder, root=os.geteuid() == 0)]
    return [each.name for each in listed if not each.present]


def install(packages: Sequence[str]) -> None:
    """Install them by apt; where this user cannot, say on stderr which line an administrator has to run."""
    script = paths.project_root() / "provision" / "install-packages.sh"
    shell.start([str(script), *packages], stdin=0, output=2, new_session=False).wait()


def present(program: str) -> bool:
    """Whether a program or, by an absolute path with wildcards, a file is here."""
    if program.startswith("/"):
        return any(Path("/").glob(program[1:]))
    # Some lie where a plain user's PATH does not look.
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None

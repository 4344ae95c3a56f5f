"""The system packages that a provider's folder lists, and which of them are installed.

Each line of a folder's file `system-packages` names a program (or the path of a file, with wildcards), the apt package
that contains it, and `user` where only users other than root need it. The launcher, a shell script, reads the same
files and installs missing packages.
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
class SystemPackage:
    """A listed package. `present` says whether its program or file exists; apt is not asked."""

    name: str
    present: bool
    program: str = ""
    """A program's name, or the path of a file."""


def listed_packages(folder: Path, *, root: bool) -> tuple[SystemPackage, ...]:
    """The packages that the folder's file lists for root, or for another user."""
    text = (folder / NAME).read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return tuple(SystemPackage(row[1], present(row[0]), row[0]) for row in rows if row[2:] != ["user"] or not root)


def lacking(providers: Iterable[str]) -> list[str]:
    """The names of the packages that these providers need and this machine lacks."""
    folders = [Path(__file__).parent / provider for provider in dict.fromkeys(providers)]
    listed = [
        each
        for folder in folders
        if (folder / NAME).exists()
        for each in listed_packages(folder, root=os.geteuid() == 0)
    ]
    return [each.name for each in listed if not each.present]


def install(packages: Sequence[str]) -> None:
    """Install packages by apt; where this user cannot, print on stderr the command for an administrator."""
    script = paths.project_root() / "provision" / "install-packages.sh"
    shell.start([str(script), *packages], stdin=0, output=2, new_session=False).wait()


def present(program: str) -> bool:
    """Whether a program, or a file by an absolute path with wildcards, exists."""
    if program.startswith("/"):
        return any(Path("/").glob(program[1:]))
    # Some programs lie outside a plain user's PATH.
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None

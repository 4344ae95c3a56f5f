"""The versions of Debian's source packages that a recipe was proven on, from its file `sources`, and the version that a
user wants instead. provision/fetch.sh fetches them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import InputError

TABLE = "sources"
UNPROVEN = "(unproven)"
"""The suffix of a product's version if its source was not proven."""
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+:~-]{0,99}")
"""deb-version(7)."""


@dataclass(frozen=True)
class Source:
    """One line: `linux-source-7.2 7.2.13-1 20261031T000000Z SHA-256 pool/…`"""

    package: str
    version: str
    day: str
    """A day on which Debian's snapshot archive had it."""
    sha256: str
    path: str
    """The path below a mirror's address."""


@dataclass(frozen=True)
class Wanted:
    """The source that a build is to use instead of the recipe's best one."""

    source: str
    """A version, or the absolute path of a file."""
    version: str
    """The product's version; empty where only the file contains it."""

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables for the recipe."""
        return {"MINIGTS_SOURCE": self.source}


def read(recipe: Path) -> tuple[Source, ...]:
    """The sources of the recipe in this folder, best first."""
    lines = (recipe / TABLE).read_text(encoding="utf-8").splitlines()
    return tuple(Source(*line.split()) for line in lines if line and not line.startswith("#"))


def parse_source(recipe: Path, text: str, *, unproven: bool) -> Wanted:
    """The meaning of `--source TEXT`, which is an existing file or a version. Raises InputError for any other text,
    and, unless `unproven`, for a source that the recipe was not proven on."""
    known = read(recipe)
    file = Path(text).absolute()
    if file.is_file():
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        version = next((each.version for each in known if each.sha256 == found), "")
        what, source = f"{text}, SHA-256 {found},", str(file)
    elif _VERSION.fullmatch(text):
        version = next((each.version for each in known if each.version == text), "")
        what, source = f"version {text}", text
    else:
        raise InputError(f"--source {text}: is neither an existing file nor a version such as {known[0].version}")
    if not version and not unproven:
        proven = ", ".join(each.version for each in known)
        raise InputError(f"--source: {what} was not proven ({proven} were); to try it all the same, add --unproven")
    return Wanted(source, version or (f"{text} {UNPROVEN}" if source == text else ""))

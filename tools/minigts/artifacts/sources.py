"""Which versions of Debian's packages a recipe was proven on, as its file `sources` has them; and what a user wants
instead. provision/fetch.sh fetches them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import InputError

TABLE = "sources"
UNPROVEN = "(unproven)"
"""How the version ends that a product keeps of a source that was not proven."""
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+:~-]{0,99}")
"""deb-version(7)."""


@dataclass(frozen=True)
class Source:
    """One line: `linux-source-7.2 7.2.13-1 20261031T000000Z SHA-256 pool/…`"""

    package: str
    version: str
    day: str
    """On which Debian's snapshot archive had it."""
    sha256: str
    path: str
    """Below a mirror's address."""


@dataclass(frozen=True)
class Wanted:
    """What a build is to take in the place of the best that there is."""

    source: str
    """A version, or the absolute path of a file."""
    version: str
    """As the product keeps it; empty where only the file says it."""

    @property
    def settings(self) -> dict[str, str]:
        """The environment of the recipe."""
        return {"MINIGTS_SOURCE": self.source}


def read(recipe: Path) -> tuple[Source, ...]:
    """The sources of the recipe in this folder, best first."""
    lines = (recipe / TABLE).read_text(encoding="utf-8").splitlines()
    return tuple(Source(*line.split()) for line in lines if line and not line.startswith("#"))


def wanted(recipe: Path, text: str, *, unproven: bool) -> Wanted:
    """What `--source` says: a file that is there, or a version. Raises InputError, unless `unproven` also for what the
    recipe was not proven on."""
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
        raise InputError(f"--source {text}: is neither a file that is here nor a version such as {known[0].version}")
    if not version and not unproven:
        proven = ", ".join(each.version for each in known)
        raise InputError(f"--source: {what} was not proven ({proven} were); to try it all the same, add --unproven")
    return Wanted(source, version or (f"{text} {UNPROVEN}" if source == text else ""))

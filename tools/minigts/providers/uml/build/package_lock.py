"""The versions of an image's Debian packages from its packages.lock, which has a line `NAME VERSION` for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError, Problem

_MOST_BYTES = 1_000_000
_LINE = re.compile(r"([a-z0-9][a-z0-9+.-]{0,200})(?::[a-z0-9]+)? ([0-9A-Za-z.+:~-]{1,200})")
"""deb-control(5): Package, Version."""
SHOWN = 10


@dataclass(frozen=True)
class Lock:
    """A file with the versions of packages that an image must have."""

    file: Path
    versions: Mapping[str, str]

    def require(self, built: Path) -> None:
        """Raise InputError unless the image with the lock `built` has exactly these packages."""
        found = differences(self.versions, read(built).versions)
        if found:
            raise InputError(
                f"the image in the cache has other packages than {self.file}: {describe(found)}\n"
                "to build one that has them: minigts image remove, and then this again"
            )

    def require_built(self, built: Path) -> None:
        """Raise EnvironmentLacks unless the image that was built with this lock has exactly its packages."""
        found = differences(self.versions, read(built).versions)
        if found:
            raise EnvironmentLacks(
                f"the Debian mirror has other versions than {self.file}: {describe(found)}\n"
                f"name a day on which Debian had them: minigts image build --lock {shlex.quote(str(self.file))} --day "
                "YYYY-MM-DD; or a mirror that has them in MINIGTS_DEBIAN_MIRROR, or import the image itself"
            )


def read(file: Path) -> Lock:
    """Read a lock. Raises InputError with every wrong line."""
    try:
        lines = paths.read_whole(file, _MOST_BYTES).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError([Problem(str(file), 0, "cannot be read: is not text in UTF-8")]) from error
    except OSError as error:
        raise InputError([Problem(str(file), 0, f"cannot be read: {error.strerror or error}")]) from error
    read_lines = [(number, _LINE.fullmatch(line)) for number, line in enumerate(lines, 1)]
    wrong = [
        Problem(
            str(file), number, f"{lines[number - 1][:60]!r}: a line is NAME VERSION, as `minigts image lock` prints"
        )
        for number, found in read_lines
        if found is None
    ]
    if wrong or not lines:
        raise InputError(wrong[:SHOWN] or [Problem(str(file), 0, "names no package")])
    return Lock(file, {found[1]: found[2] for _, found in read_lines if found is not None})


def differences(wanted: Mapping[str, str], there: Mapping[str, str]) -> tuple[str, ...]:
    """A few words for each package whose version differs, sorted by name."""
    return tuple(
        f"{name} {wanted.get(name, 'absent')} → {there.get(name, 'absent')}"
        for name in sorted(wanted.keys() | there.keys())
        if wanted.get(name) != there.get(name)
    )


def describe(found: tuple[str, ...]) -> str:
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more}"

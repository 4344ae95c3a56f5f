"""What lies beside a file of another tool's that means its directory, too. Nothing is run, and no link followed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from minigts.errors import InputError
from minigts.language.source import Language, read_text

_MOST_NAMES = 10_000
_SCRIPT = Language("script", "a command", 64_000, "")
_CONTENT = Language("device's file", "text", 1_000_000, "")


@dataclass(frozen=True)
class FileDirectory:
    """The directory of a file; None: there is none, as for a text that is no file's."""

    directory: Path | None

    @property
    def name(self) -> str:
        """The directory's name; that of the one around it where it says no more than `lab`."""
        if self.directory is None:
            return ""
        path = self.directory.resolve()
        return path.parent.name if path.name == "lab" else path.name

    def names(self) -> list[str]:
        """The names in the directory, in order."""
        try:
            found = () if self.directory is None else islice(self.directory.iterdir(), _MOST_NAMES)
            return sorted(each.name for each in found)
        except OSError:
            return []

    def text(self, name: str) -> str | None:
        """The text of a file there; None where there is none. Raises InputError for what is no text."""
        if self.directory is None or name not in self.names():
            return None
        return read_text(self.directory / name, _SCRIPT)

    def files(self, folder: str) -> list[tuple[str, str | None]]:
        """The files below a folder there, by their paths from the directory, with their texts: None for what is no
        plain file, empty for what is no text."""
        if self.directory is None or not (self.directory / folder).is_dir() or (self.directory / folder).is_symlink():
            return []
        found: list[tuple[str, str | None]] = []
        for place, folders, names in os.walk(self.directory / folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place, name)
                found.append((str(path.relative_to(self.directory)), _content(path)))
                if len(found) >= _MOST_NAMES:
                    return found
        return found

    def naming(self, source: str, interfaces: Collection[str]) -> str | None:
        """The first of these interfaces that a file, or a file below a folder, names; None for none."""
        if self.directory is None or not interfaces:
            return None
        path = self.directory / source
        texts = [text for _, text in self.files(source)] if path.is_dir() else [_content(path)]
        return next((name for text in texts if text for name in interfaces if names_interface(text, name)), None)


def names_interface(text: str, name: str) -> bool:
    """Whether a text has the name of an interface as a word."""
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", text) is not None


def _content(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _CONTENT.largest_bytes:
        return None
    try:
        return read_text(path, _CONTENT)
    except InputError:
        return ""

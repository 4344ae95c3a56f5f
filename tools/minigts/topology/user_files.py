"""Whether a file of the user's may be taken into a lab, and its digest.

Anybody may have written a topology. So it may name only files in its own directory, or in one that the user has named.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from minigts.foreign import UNPRINTABLE
from minigts.language.source import Language, read_text
from minigts.paths import FILES, NotRegularError, files_roots, open_regular
from minigts.topology.software import LARGEST_FILE_MB, MOST_FILES_IN_DIRECTORY

_BLOCK_BYTES = 1 << 20


class FileRefused(Exception):
    """The reason why a file is not taken; it follows the file's name in a message."""


@dataclass(frozen=True)
class UserFiles:
    """The files that a topology may name. `texts` collects those that go into its plan, by path relative to the
    topology's directory."""

    directory: Path
    """The topology's directory, to which paths are relative."""
    further: tuple[Path, ...] = field(default_factory=files_roots)
    """Further directories from which the user allows files."""
    contents: bool = True
    """Whether the files, volumes and images of hosts are read. If not, only texts are."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Texts that are known already, by the same paths."""
    texts: dict[str, str] = field(default_factory=dict, compare=False)

    def place(self, source: str) -> Path:
        """The resolved path of `source`. Raises FileRefused where it is not there, or leads out of the
        directories."""
        base = self.directory.resolve()
        try:
            path = (base / source).resolve(strict=True)
        except (OSError, RuntimeError):  # a loop of symbolic links raises either, by Python's version
            raise FileRefused("is not there: paths begin in the topology file's directory") from None
        self.require(source)
        if UNPRINTABLE.search(str(path)):
            raise FileRefused("lies where a path holds characters that cannot be shown")
        if path == base:
            raise FileRefused("is the topology's whole directory: name what is in it")
        return path

    def require(self, source: str) -> None:
        """Raise FileRefused for a path that leads out of the directories, whether or not the file exists. Symbolic
        links are followed."""
        try:
            bases = [directory.resolve() for directory in (self.directory, *self.further)]
            path = (bases[0] / source).resolve()
        except (OSError, RuntimeError, ValueError):
            raise FileRefused("is no path that can be followed") from None
        if not any(path.is_relative_to(base) for base in bases):
            raise FileRefused(
                "leads out of the topology's directory: a lab takes files from there, and from the directories that "
                f"you name in {FILES}"
            )

    def text(self, source: str, language: Language) -> str:
        """The text of a file that goes into the plan. Raises FileRefused, InputError."""
        name = os.path.normpath(source)
        found = self.given.get(name)
        self.texts[name] = read_text(self.place(source), language) if found is None else found
        return self.texts[name]


def digest(path: Path) -> str:
    """SHA-256 of a file's content, or of all that a directory holds: names, modes, contents, targets of links.

    Raises FileRefused for what is neither file nor directory, cannot be read, or is too large.
    """
    try:
        if path.is_dir():
            return _of_directory(path)
        return _of_file(path, LARGEST_FILE_MB << 20)[0]
    except OSError as error:
        raise FileRefused(f"cannot be read: {error.strerror or error}") from error


def _of_file(path: Path, most_bytes: int) -> tuple[str, int]:
    """A file's digest and size."""
    content, size = hashlib.sha256(), 0
    try:
        regular = open_regular(path)
    except NotRegularError as error:
        raise FileRefused("is neither a file nor a directory, or holds what is neither") from error
    with regular as file:
        while block := file.read(_BLOCK_BYTES):
            size += len(block)
            if size > most_bytes:
                raise FileRefused(f"has more than the {LARGEST_FILE_MB} MB that are copied as a lab comes up")
            content.update(block)
    return content.hexdigest(), size


def _of_directory(directory: Path) -> str:
    whole, left_bytes = hashlib.sha256(), LARGEST_FILE_MB << 20
    for path in _below(directory):
        name, mode = os.fsencode(path.relative_to(directory)), path.lstat().st_mode
        whole.update(b"%d %s %o " % (len(name), name, mode))
        if path.is_symlink():
            whole.update(b"to %s" % os.fsencode(path.readlink()))
        elif not path.is_dir():
            content, size = _of_file(path, left_bytes)
            left_bytes -= size
            whole.update(content.encode())
    return whole.hexdigest()


def _below(directory: Path) -> Iterator[Path]:
    """All paths below a directory, in a fixed order."""
    count = 0
    for place, directories, names in os.walk(directory, onerror=_raise):
        directories.sort()
        for name in sorted((*directories, *names)):
            count += 1
            if count > MOST_FILES_IN_DIRECTORY:
                raise FileRefused(f"holds more than {MOST_FILES_IN_DIRECTORY} files")
            yield Path(place, name)


def _raise(error: OSError) -> None:
    raise error

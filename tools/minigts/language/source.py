"""Read a file's text. A device, a pipe, a directory, a huge or a binary file gives one problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.paths import NotRegularError, open_regular


@dataclass(frozen=True)
class Language:
    """A kind of file. `name` is the word for it in messages, `opening` what it begins with, `instead_of_aliases` the
    advice to a user of aliases; empty where aliases and merge keys (`<<`) are read, as other tools' files have them."""

    name: str
    opening: str
    largest_bytes: int
    instead_of_aliases: str

    @property
    def one(self) -> str:
        """`an experiment`."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"


def read_text(path: str | Path, language: Language) -> str:
    """The text of an input file. Raises InputError when it is not there, not a file, too large, or not text."""
    data = _read_bytes(Path(path), language)
    if b"\0" in data:
        raise _refused(path, f"binary data, not {language.one}", data[: data.index(b"\0")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, "not UTF-8 text", data[: error.start]) from None


def _read_bytes(path: Path, language: Language) -> bytes:
    try:
        with open_regular(path) as stream:
            data = stream.read(language.largest_bytes + 1)
    except NotRegularError as error:
        kind = "is a directory, not a file" if error.is_directory else "is not a regular file"
        raise _refused(path, kind) from None
    except FileNotFoundError:
        raise _refused(path, "no such file") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _refused(path, f"cannot be read: {reason}") from None
    if len(data) > language.largest_bytes:
        raise _refused(path, f"larger than {language.largest_bytes // 1000} kB, which no {language.name} needs")
    return data


def _refused(path: str | Path, message: str, before: bytes | None = None) -> InputError:
    """The one problem of a file that is not read on; `before` is what precedes it, when it has a place."""
    return InputError([Problem(str(path), 0 if before is None else before.count(b"\n") + 1, message)])

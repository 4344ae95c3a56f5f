"""Words of a stranger: what a host's programs print, a cluster answers, a foreign file says.

`Foreign` holds such a text and is no `str`. It can be looked at, taken apart and compared, and what it is taken apart
into is Foreign again. It becomes text only through a door: one of the functions below, each of which makes the text
harmless for one place, or refuses it. `tests/foreign_plugin.py` has mypy refuse Foreign in f-strings, `str()` and
`print`, which take any object; everywhere else mypy refuses what is no `str`. docs/evidence/safety.md
has the table of places.

Doors refuse by ValueError, which `errors.reading_from` turns into an error that names the host.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that act on a terminal instead of being shown: control characters except tab and line feed, characters
that turn the direction of writing or begin a line; and surrogates, which cannot be written at all."""

MOST_SHOWN = 100_000
"""The most characters that `shown` gives, unless its caller wants fewer."""
LONGEST_FILE_NAME = 120
"""The most characters of a name that `file_name` gives: a suffix fits behind it in the 255 bytes of a file's name."""
_NOT_IN_A_FILE_NAME = re.compile(r"^[.-]|[^A-Za-z0-9._+@=,-]")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_FIGURE = re.compile(r"[+-]?[0-9]{0,30}\.?[0-9]{1,30}(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_PATH = re.compile(r"/[^\x00-\x1f\x7f]{0,4095}")
_REPR = 200


def printable(text: str) -> str:
    """`text` with each character of UNPRINTABLE as its escape: `\\x1b`, `\\u202e`."""
    return UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


class Foreign:
    """A text that a stranger has written."""

    __slots__ = ("_strange",)

    def __init__(self, text: str | Foreign = "") -> None:
        if not isinstance(text, str | Foreign):
            raise TypeError(f"a stranger's words are text, and not {type(text).__name__}")
        self._strange: str = text if isinstance(text, str) else text._strange

    def __str__(self) -> str:
        raise TypeError(f"{self!r} is a stranger's: pass it through a door of minigts.foreign")

    def __format__(self, _how: str) -> str:
        raise TypeError(f"{self!r} is a stranger's: pass it through a door of minigts.foreign")

    def __repr__(self) -> str:
        cut = "..." if len(self._strange) > _REPR else ""
        return f"Foreign({self._strange[:_REPR]!a}{cut})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Foreign):
            return self._strange == other._strange
        return self._strange == other if isinstance(other, str) else NotImplemented

    def __lt__(self, other: Foreign) -> bool:
        return self._strange < other._strange

    def __hash__(self) -> int:
        return hash(self._strange)

    def __len__(self) -> int:
        return len(self._strange)

    def __contains__(self, part: str) -> bool:
        return part in self._strange

    def __getitem__(self, which: SupportsIndex | slice) -> Foreign:
        return Foreign(self._strange[which])

    def __add__(self, other: Foreign | str) -> Foreign:
        """What has a stranger's part is a stranger's as a whole."""
        return Foreign(self._strange + Foreign(other)._strange)

    def __radd__(self, other: str) -> Foreign:
        return Foreign(other + self._strange)

    def splitlines(self, keepends: bool = False) -> list[Foreign]:
        return [Foreign(line) for line in self._strange.splitlines(keepends)]

    def split(self, by: str | None = None, most: int = -1) -> list[Foreign]:
        return [Foreign(part) for part in self._strange.split(by, most)]

    def partition(self, by: str) -> tuple[Foreign, Foreign, Foreign]:
        before, found, after = self._strange.partition(by)
        return Foreign(before), Foreign(found), Foreign(after)

    def strip(self, these: str | None = None) -> Foreign:
        return Foreign(self._strange.strip(these))

    def removeprefix(self, start: str) -> Foreign:
        return Foreign(self._strange.removeprefix(start))

    def removesuffix(self, end: str) -> Foreign:
        return Foreign(self._strange.removesuffix(end))

    def lower(self) -> Foreign:
        return Foreign(self._strange.lower())

    def startswith(self, start: str | tuple[str, ...]) -> bool:
        return self._strange.startswith(start)

    def endswith(self, end: str | tuple[str, ...]) -> bool:
        return self._strange.endswith(end)

    def count(self, part: str) -> int:
        return self._strange.count(part)

    def match_whole(self, pattern: re.Pattern[str]) -> tuple[Foreign, ...] | None:
        """The groups of a pattern that matches the whole text; None when it does not match. A group that took no part
        is empty."""
        found = pattern.fullmatch(self._strange)
        return None if found is None else tuple(Foreign(group or "") for group in found.groups())

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        """In a model that is read from a stranger's JSON: a string there, and in what the model writes."""
        from pydantic_core import core_schema  # noqa: PLC0415 # most programs read no such model

        return core_schema.no_info_before_validator_function(
            _text_of,
            core_schema.no_info_after_validator_function(cls, core_schema.str_schema()),
            serialization=core_schema.plain_serializer_function_ser_schema(_text_of),
        )


def _text_of(value: object) -> object:
    return value._strange if isinstance(value, Foreign) else value


# The doors. Each is named after the place.


def screen_text(word: Foreign, most: int = MOST_SHOWN) -> str:
    """On a terminal and in a message: without characters that act on a terminal, and not endless."""
    text = word._strange
    return printable(text if len(text) <= most else f"{text[:most]}…")


def one_line(word: Foreign, most: int = 1000) -> str:
    """As `shown`, in one line."""
    return screen_text(Foreign(" ".join(word._strange[: 2 * most].split())), most)


def file_name(word: Foreign) -> str:
    """The name of a file or folder: one component of a path, never `.` or `..`, and neither hidden nor an option.

    A character other than letters of ASCII, digits and `._+@=,-` becomes `%2F` as in an address, and so do a dot or
    hyphen at the beginning; a name of more than LONGEST_FILE_NAME characters ends in `~` and a digest instead. So two
    words never have the same name.
    """
    name = _NOT_IN_A_FILE_NAME.sub(_percent, word._strange) or "%"
    if len(name) <= LONGEST_FILE_NAME:
        return name
    digest = hashlib.sha256(word._strange.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{name[: LONGEST_FILE_NAME - len(digest) - 1]}~{digest}"


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def identifier(word: Foreign, pattern: re.Pattern[str]) -> str:
    """A word of a command, a key, an address: as the whole pattern allows. Raises ValueError."""
    if not pattern.fullmatch(word._strange):
        raise ValueError(f"{word!r} does not match {pattern.pattern}")
    return word._strange


def variables(
    words: Iterable[tuple[Foreign, Foreign]],
    allowed: Mapping[str, re.Pattern[str]],
    hidden: re.Pattern[str] | None = None,
) -> dict[str, str]:
    """Variables of an environment: only keys that are listed, each with a value that its whole pattern allows. Raises
    ValueError, which names the key, and shows no value of a key in which `hidden` is found."""
    found = {}
    for key, value in words:
        pattern = allowed.get(key._strange)
        if pattern is None:
            raise ValueError(f"{_cut(key)} is none of its variables: {', '.join(sorted(allowed)) or 'it has none'}")
        if not pattern.fullmatch(value._strange):
            said = "…" if hidden and hidden.search(key._strange) else _cut(value)
            raise ValueError(f"{key._strange}={said} is not of the form {pattern.pattern}")
        found[key._strange] = value._strange
    return found


def _cut(word: Foreign) -> str:
    return ascii(screen_text(word, 80))


def whole_number(word: Foreign, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """A whole number between these. Raises ValueError."""
    text = word._strange.strip()
    if not _WHOLE_NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{word!r} is no whole number from {least} to {most}")
    return int(text)


def decimal_number(word: Foreign, least: float, most: float) -> float:
    """A decimal number between these. Raises ValueError."""
    text = word._strange.strip()
    if not _FIGURE.fullmatch(text) or not least <= float(text) <= most:
        raise ValueError(f"{word!r} is no number from {least:g} to {most:g}")
    return float(text)


def path_there(word: Foreign) -> PurePosixPath:
    """A path on the host that has said it, which is used on that host alone. Raises ValueError for one that is not
    absolute, or has a control character."""
    return PurePosixPath(identifier(word, _PATH))


def content(word: Foreign) -> str:
    """The content of a file of its own that says whose words it has: a log, a raw output. Never a part of a file that
    a program obeys."""
    return word._strange.encode("utf-8", "replace").decode()


def user_text(word: Foreign) -> str:
    """What a user's own program gets, which has asked for it: at the border of `minigts.api` alone."""
    return word._strange


def parser_text(word: Foreign) -> str:
    """For a parser, whose results are numbers, words of the plan, Foreign, or text of messages. Any module that calls
    it is listed, with the reason, in tests/unit/test_foreign.py."""
    return word._strange

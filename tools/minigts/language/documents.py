"""JSON from outside: a file, a guest, a worker. Its size and elements are checked before it is parsed.

A document's memory depends on its number of elements and not on its size: 100 MB of `{},{},…` become 5 GB. So its
lists, mappings and entries are counted in the text, outside of strings, and too many are refused. Only the standard
library and `foreign` are imported here, since a lab's supervisor reads its own files by this, too.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from minigts.foreign import Foreign, parser_text

_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, which may be unfinished at the text's end. The pattern never goes back, so its time is that of the text."""


Content = str | bytes | bytearray | Foreign


class Unreadable(ValueError):
    """Why a document is refused; it follows the document's name in a message. `line` is 0 for the whole document."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Bounds:
    """How much a document may hold."""

    elements: int = 100_000
    """The most lists, mappings and entries. Each takes up to some 250 bytes."""
    bytes: int = 16 << 20
    """The largest size in UTF-8. In memory the text may take twice that: one wide character makes all others wider."""


USUAL = Bounds()


_T_co = TypeVar("_T_co", covariant=True)


class Model(Protocol):
    """A class of pydantic's."""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray) -> Any: ...


class Adapter(Protocol[_T_co]):
    """A TypeAdapter of pydantic's."""

    def validate_json(self, data: str | bytes | bytearray, /) -> _T_co: ...


_M = TypeVar("_M", bound=Model)


def bounded_text(content: Content, bounds: Bounds = USUAL) -> str:
    """The document's text. Raises Unreadable when it holds more than the bounds, or is no text."""
    text = _text(content, bounds)
    if sys.getsizeof(text) > 2 * bounds.bytes + 1024:
        raise Unreadable(f"takes more than {2 * bounds.bytes >> 10} KiB of memory")
    if sum(map(text.count, ",[{")) >= bounds.elements:
        most_strings = 2 * bounds.elements + 1  # a key and a value for each entry
        bare, strings = _STRINGS.subn("", text, count=most_strings)
        if strings == most_strings or sum(map(bare.count, ",[{")) >= bounds.elements:
            raise Unreadable(f"holds more than {bounds.elements} entries")
    return text


def _text(content: Content, bounds: Bounds) -> str:
    if isinstance(content, Foreign):
        content = parser_text(content)
    if len(content) > bounds.bytes:
        raise Unreadable(f"is larger than {bounds.bytes >> 10} KiB")
    if isinstance(content, str):
        return content
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("is not text in UTF-8", content.count(b"\n", 0, error.start) + 1) from None


def document(
    content: Content,
    bounds: Bounds = USUAL,
    *,
    whole: Callable[[str], Any] | None = None,
    real: Callable[[str], Any] | None = None,
) -> Any:
    """The parsed document. `whole` and `real` parse its numbers, and may raise ValueError. Raises Unreadable, also for
    NaN and infinities."""
    text = bounded_text(content, bounds)
    try:
        return json.loads(text, parse_int=whole, parse_float=real or _finite, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise Unreadable(f"is not JSON: {error.msg}", error.lineno) from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("is nested too deep") from None


def model(content: Content, kind: type[_M], bounds: Bounds = USUAL) -> _M:
    """The document as that model. Raises Unreadable, and pydantic's ValidationError, which both are ValueErrors."""
    made: _M = kind.model_validate_json(bounded_text(content, bounds))
    return made


def value(content: Content, kind: Adapter[_T_co], bounds: Bounds = USUAL) -> _T_co:
    """As `model`, of a kind that a TypeAdapter reads, as one of several models."""
    return kind.validate_json(bounded_text(content, bounds))


def _finite(text: str) -> float:
    """The number `1e999` is JSON's, and would be Python's infinity."""
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON's")

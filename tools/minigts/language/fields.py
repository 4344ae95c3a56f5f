"""The fields of a language's models: for each kind of value its parser, its error message, its schema.

Values arrive as strings from a file (see `tree`), and as JSON values from a stored document (a manifest).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from minigts.language.problems import did_you_mean, list_names, quote
from minigts.language.quantities import LARGEST_NUMBER, Quantity, Words, plain_number, whole_number


class Strict(BaseModel):
    """The base of a language's models: frozen, without unknown keys, with fields described by their docstrings. Each is
    built when it is first used, so that a verb starts without those it does not read."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, use_attribute_docstrings=True, defer_build=True
    )


MADE = {"use_attribute_docstrings": False}
"""For a model that `create_model` makes (`__cls_kwargs__`): pydantic looks long for its source, which is not there."""


def quantity(kind: Quantity, *, whole: bool = False) -> tuple[BeforeValidator, WithJsonSchema]:
    """A quantity with its unit, parsed to a number in the plan's unit; an int when `whole`."""
    return BeforeValidator(kind.parse_whole if whole else kind.parse), text_schema(kind.pattern, kind.example)


def text_schema(pattern: str, *examples: str) -> WithJsonSchema:
    """The schema of a text of that form."""
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def whole(what: str, least: int, most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """A whole number in a range."""

    def parse(value: object) -> int:
        return whole_number(value, what, least, most)

    return BeforeValidator(parse), WithJsonSchema({"type": "integer", "minimum": least, "maximum": most})


def truth(what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """true or false."""

    def parse(value: object) -> bool:
        if value not in (True, False, "true", "false") or (
            isinstance(value, int | float) and not isinstance(value, bool)
        ):
            raise ValueError(f"{quote(value)} does not say whether {what}: write true or false")
        return value in (True, "true")

    return BeforeValidator(parse), WithJsonSchema({"type": "boolean"})


def number(what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """A number without a unit."""

    def parse(value: object) -> float:
        return plain_number(value, what)

    limits = {"minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER}
    return BeforeValidator(parse), WithJsonSchema({"type": "number", **limits})


def choice(what: str, *words: str) -> BeforeValidator:
    """One of a few words; it stands before a `Literal` of the same words."""
    return BeforeValidator(Words(what, words).parse)


def matching(what: str, pattern: re.Pattern[str]) -> tuple[BeforeValidator, WithJsonSchema]:
    """Text of a form."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{quote(value)} is not {what}")
        return value

    return BeforeValidator(parse), WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})


def text(what: str, longest: int, *, one_line: bool = False) -> BeforeValidator:
    """Any text up to a length; without tabs and line feeds when it is `one_line`."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or len(value) > longest:
            raise ValueError(f"{quote(value)} is not {what}: write text of at most {longest} characters")
        if one_line and ("\n" in value or "\t" in value):
            raise ValueError(f"{quote(value)} is not {what}: write it in one line, without tabs")
        return value

    return BeforeValidator(parse)


def unknown(what: str, kind: str, word: str, known: Sequence[str]) -> str:
    """`no host 'mill'; did you mean 'mil'?`, or the list of known words."""
    return f"no {what} {quote(word)}{did_you_mean(word, known) or f'; {kind} are {list_names(known)}'}"

"""A link's two directions as a file writes them: one value for both, or `{to: VALUE, from: VALUE}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import PlainValidator, WithJsonSchema

from minigts.language.fields import unknown
from minigts.language.problems import Finding, Misplaced
from minigts.language.quantities import Quantity

T = TypeVar("T")
TO, FROM = "to", "from"
"""From the first of a link's ends to the second, and the way back."""


class BothWays(NamedTuple, Generic[T]):
    """A value for each direction of a link."""

    to: T
    """From the first of its ends to the second."""
    back: T


def each_way(kind: Quantity) -> tuple[PlainValidator, WithJsonSchema]:
    """A quantity that holds for both directions, or a mapping with one for each, as the numbers that the plan counts
    in."""
    return PlainValidator(_reader(kind.parse, kind.example)), _schema(kind)


def whole_each_way(kind: Quantity) -> tuple[PlainValidator, WithJsonSchema]:
    """The same of what is counted in whole units."""
    return PlainValidator(_reader(kind.parse_whole, kind.example)), _schema(kind)


def _reader(parse: Callable[[object], T], example: str) -> Callable[[object], BothWays[T]]:
    def read(value: object) -> BothWays[T]:
        if not isinstance(value, dict):
            both = parse(value)
            return BothWays(both, both)
        findings: list[Finding] = []
        found: dict[str, T] = {}
        for direction, written in value.items():
            try:
                if direction in (TO, FROM):
                    found[direction] = parse(written)
                else:
                    findings.append(((direction,), unknown("direction", "directions", direction, (TO, FROM))))
            except ValueError as error:
                findings.append(((direction,), str(error)))
        for direction in (TO, FROM):
            if direction not in value:
                hint = f"two directions are written as in {{to: {example}, from: {example}}}"
                findings.append(((), f"{direction!r} is missing: {hint}"))
        if findings:
            raise Misplaced(findings)
        return BothWays(found[TO], found[FROM])

    return read


def _schema(kind: Quantity) -> WithJsonSchema:
    one = {"type": "string", "pattern": kind.pattern, "examples": [kind.example]}
    mapping = {
        "type": "object",
        "properties": {
            TO: {**one, "description": "From the first of the ends to the second."},
            FROM: {**one, "description": "From the second of the ends to the first."},
        },
        "required": [TO, FROM],
        "additionalProperties": False,
    }
    return WithJsonSchema({"anyOf": [one, mapping]})

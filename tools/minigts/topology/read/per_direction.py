"""A link's two directions as a file writes them: one value for both, or `{to: VALUE, from: VALUE}`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from pydantic import PlainValidator, WithJsonSchema

from minigts.language.fields import unknown
from minigts.language.problems import Finding, Misplaced, list_names, quote
from minigts.language.quantities import whole_number
from minigts.topology.link_setting import Amount, Setting

T = TypeVar("T")
TO, FROM = "to", "from"
"""The keys of the directions from a link's first end to its second, and back."""


class BothWays(NamedTuple, Generic[T]):
    """A value for each direction of a link."""

    to: T
    """From the first of its ends to the second."""
    back: T


Read: TypeAlias = Mapping[str, BothWays[Any]]
"""The values under one key of a link, by field of `Shaping`; None in a direction that does not have the field."""


def _no_mapping(value: object, keys: Iterable[str]) -> str:
    if value == {}:
        return f"the mapping is empty; its keys are {list_names([*keys])}"
    return f"{quote(value)} is no mapping of {list_names([*keys])}"


def key_annotations(settings: Sequence[Setting]) -> tuple[PlainValidator, WithJsonSchema]:
    """The validator and schema of one key of a link with its `settings`, mostly one, as for `delay`. A mapping, such as
    `queue: {size: 100kB, discipline: fq_codel}`, has nested settings by their keys, and the key's own value, too. Such
    a mapping may stand in each direction: `{to: {discipline: codel}, from: 100kB}`.
    """
    own = next((each for each in settings if each.word == each.head), None)
    nested = {each.key: each for each in (*settings, *(own.beside if own is not None else ()))}

    nested_example = next(f"{each.key}: {each.kind.example}" for each in settings)
    by_direction = len(nested) > 1 and (own is None or own.joined is None)

    def one_way(value: object) -> Mapping[str, Amount]:
        if own is not None and not isinstance(value, dict):
            return dict([own.read(value)])
        if not isinstance(value, dict) or not value:
            raise ValueError(_no_mapping(value, nested))
        return dict(_each(value, lambda key, written: nested[key].read(written), "key", nested))

    def read(value: object) -> Read:
        if by_direction and isinstance(value, dict) and any(isinstance(value.get(way), dict) for way in (TO, FROM)):
            example = f"{{{TO}: {{{nested_example}}}, {FROM}: {{{nested_example}}}}}"
            missing = _missing(value, example)
            ways = dict(
                _each(value, lambda way, written: (way, one_way(written)), "direction", (TO, FROM), and_then=missing)
            )
            return {field: BothWays(ways[TO].get(field), ways[FROM].get(field)) for field in {**ways[TO], **ways[FROM]}}
        found = values(value)
        return found if own is None or own.joined is None else own.joined(found)

    def values(value: object) -> dict[str, BothWays[Amount | None]]:
        if own is not None and (len(nested) == 1 or not isinstance(value, dict) or not {TO, FROM}.isdisjoint(value)):
            return _both(own, value)
        if not isinstance(value, dict) or not value:
            head, (key, example) = settings[0].head, next((each.key, each.kind.example) for each in settings)
            raise ValueError(f"{_no_mapping(value, nested)}: {head}: {{{key}: {example}}}")
        each_key = dict(_each(value, lambda key, written: (key, _both(nested[key], written)), "key", nested))
        return {field: both for fields in each_key.values() for field, both in fields.items()}

    one = [_schema(own)] if own is not None else []
    if len(nested) == 1 and own is not None:
        return PlainValidator(read), WithJsonSchema({"anyOf": _flat(one)})
    properties = {key: {"anyOf": _flat([_schema(each)]), "description": each.about} for key, each in nested.items()}
    mapping = {"type": "object", "properties": properties, "minProperties": 1, "additionalProperties": False}
    single = {key: {**each.kind.schema, "description": each.about} for key, each in nested.items()}
    either = {"anyOf": [*([own.kind.schema] if own is not None else []), {**mapping, "properties": single}]}
    by_way = {
        "type": "object",
        "properties": {TO: either, FROM: either},
        "required": [TO, FROM],
        "additionalProperties": False,
    }
    forms = [mapping, by_way] if by_direction else [mapping]
    return PlainValidator(read), WithJsonSchema({"anyOf": [*_flat(one), *forms]})


def _both(setting: Setting, value: object) -> dict[str, BothWays[Amount | None]]:
    """The values of the directions by field; of another unit the two may be values of different fields."""
    ways = _of_both(value, setting.read, setting.kind.example)
    return {
        field: BothWays(*(amount if own == field else None for own, amount in ways))
        for field in dict.fromkeys(own for own, _ in ways)
    }


def _of_both(value: object, parse: Callable[[object], T], example: str) -> BothWays[T]:
    if not isinstance(value, dict):
        both = parse(value)
        return BothWays(both, both)
    missing = _missing(value, f"{{{TO}: {example}, {FROM}: {example}}}")
    found = dict(_each(value, lambda way, written: (way, parse(written)), "direction", (TO, FROM), and_then=missing))
    return BothWays(found[TO], found[FROM])


def _missing(value: Mapping[Any, object], example: str) -> list[Finding]:
    """A finding for each direction that the mapping lacks."""
    hint = f"two directions are written as in {example}"
    return [((), f"{direction!r} is missing: {hint}") for direction in (TO, FROM) if direction not in value]


def _each(
    value: Mapping[Any, object],
    read: Callable[[str, object], tuple[str, T]],
    what: str,
    known: Sequence[str] | Mapping[str, object],
    and_then: Sequence[Finding] = (),
) -> Iterator[tuple[str, T]]:
    """Yield `read` of each entry of a mapping with `known` keys. Raises Misplaced with all that is wrong."""
    findings: list[Finding] = []
    found: list[tuple[str, T]] = []
    for key, written in value.items():
        try:
            if key in known:
                found.append(read(key, written))
            else:
                findings.append(((key,), unknown(what, f"{what}s", key, [*known])))
        except Misplaced as error:
            findings += [((key, *where), message) for where, message in error.findings]
        except ValueError as error:
            findings.append(((key,), str(error)))
    if findings or and_then:
        raise Misplaced([*findings, *and_then])
    yield from found


def _schema(setting: Setting) -> list[dict[str, Any]]:
    return _for_each(setting.kind.schema)


def _for_each(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schema of one value, and that of one for each direction."""
    mapping = {
        "type": "object",
        "properties": {
            TO: {**one, "description": "From the first of the ends to the second."},
            FROM: {**one, "description": "From the second of the ends to the first."},
        },
        "required": [TO, FROM],
        "additionalProperties": False,
    }
    return [dict(one), mapping]


def _flat(alternatives: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [each for several in alternatives for each in several]


LARGEST_COST = 65535
"""OSPF has 16 bits for a cost (RFC 2328, section A.4.2)."""


def _cost(value: object) -> BothWays[int]:
    return _of_both(value, lambda written: whole_number(written, "a cost", 1, LARGEST_COST), "10")


COST = (
    PlainValidator(_cost),
    WithJsonSchema({"anyOf": _for_each({"type": "integer", "minimum": 1, "maximum": LARGEST_COST})}),
)
"""The validator and schema of a link's cost."""

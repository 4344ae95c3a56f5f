"""Validate data by a model, with every finding at its place and in the language's words; and make its schema."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Discriminator, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from minigts.errors import Problem
from minigts.language import remainder
from minigts.language.problems import (
    Finding,
    Location,
    Misplaced,
    did_you_mean,
    enough,
    list_names,
    quote,
    require_none,
)
from minigts.language.tree import Data, Tree

M = TypeVar("M", bound=BaseModel)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def read_model(
    tree: Tree,
    file: str,
    root: type[M],
    check: Callable[[M], Iterable[Finding]],
    stand_ins: Mapping[str, Data] = MappingProxyType({}),
) -> M:
    """The document of `tree` as a model, of which `check` found nothing wrong. Raises InputError with every problem.

    Where values are refused, the rest of the document is checked without them; `stand_ins` are then the values of keys
    without which it is none.
    """
    model, findings = validate(tree.data, root)
    found = list(enough(findings if model is None else check(model)))
    if model is None and found:
        found += remainder.further(tree.data, lambda data: validate(data, root), check, found, stand_ins)  # type: ignore[arg-type]
    require_none(problems(tree, file, found), file)
    assert model is not None  # without one there are findings
    return model


def validate(data: Data, root: type[M]) -> tuple[M | None, Iterator[Finding]]:
    """The document as a model, or what is wrong with it."""
    try:
        return root.model_validate(data), iter(())
    except ValidationError as error:
        return None, findings_of(error, root)


def problems(tree: Tree, file: str, findings: Iterable[Finding]) -> list[Problem]:
    """Findings with their lines, and what was found when the tree was read."""
    return [*tree.problems, *(tree.problem(file, finding) for finding in enough(findings))]


def findings_of(error: ValidationError, root: type[BaseModel]) -> Iterator[Finding]:
    """The findings in pydantic's `error` on model `root`, in the language's words, each with its place."""
    for detail in error.errors(include_url=False):
        where, around = _placed(detail["loc"], root)
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Misplaced):
            yield from (((*where, *below), message) for below, message in cause.findings)
        elif detail["type"] == "too_short" and detail["input"]:
            continue  # its entries are all refused, each with a message of its own
        elif detail["type"] == "missing":
            # A missing key has no line: it is reported where its mapping starts.
            yield where[:-1], f"{str(where[-1])!r} is missing"
        else:
            yield where, _message(detail, str(where[-1]) if where else "", around)


def _message(detail: ErrorDetails, key: str, around: type[BaseModel]) -> str:
    """pydantic's message in the language's words."""
    got, context = quote(detail["input"]), detail.get("ctx", {})
    message = str(detail["msg"])
    match detail["type"]:
        case "value_error":
            message = str(context["error"])
        case "extra_forbidden":
            known = keys(around)
            message = f"unknown key{did_you_mean(key, known) or '; keys here are ' + ', '.join(known)}"
        case "model_type" | "dict_type" | "model_attributes_type":
            message = f"{got} where a mapping is wanted, as in `key: value`"
        case "tuple_type" | "list_type":
            message = f"{got} where a list is wanted, as in `- …`"
        case "string_type":
            message = f"{got} where text is wanted"
        case "too_short":
            message = "an empty list; at least one entry is wanted"
        case "literal_error":
            message = f"{got} is unknown; it is {context['expected']}"
        case "union_tag_not_found":
            message = f"{context['discriminator']} is missing"
        case "union_tag_invalid":
            word, tag = str(context["discriminator"]).strip("'"), str(context["tag"])
            known = [each.strip("'") for each in str(context["expected_tags"]).split(", ")]
            message = f"no {word} {quote(tag)}; {word}s are {list_names(known)}{did_you_mean(tag, known)}"
    return message


def keys(model: type[BaseModel]) -> list[str]:
    """The keys of a mapping, as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _placed(location: tuple[int | str, ...], root: type[BaseModel]) -> tuple[Location, type[BaseModel]]:
    """The place in the document for pydantic's location, which has further steps for members of a union; and the model
    of the innermost mapping around it."""
    where: list[int | str] = []
    here: object = root
    around = root
    for step in location:
        members = _members(here)
        if members and step in members:
            here = members[str(step)]
            continue
        model = _model(here)
        if model is not None:
            around = model
        if step != "[key]":
            where.append(step)
        here = _below(here, step)
    return tuple(where), around


def _bare(annotation: object) -> object:
    """The annotation without `Annotated`, and without the `None` of an optional value."""
    while True:
        arguments = typing.get_args(annotation)
        if typing.get_origin(annotation) is Annotated:
            annotation = arguments[0]
        elif _is_union(annotation) and len(present := [each for each in arguments if each is not type(None)]) == 1:
            annotation = present[0]
        else:
            return annotation


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _model(annotation: object) -> type[BaseModel] | None:
    bare = _bare(annotation)
    return bare if isinstance(bare, type) and issubclass(bare, BaseModel) else None


def _below(annotation: object, step: int | str) -> object:
    """The annotation one step below; None where the model has no such step."""
    if model := _model(annotation):
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        field = fields.get(str(step)) or model.model_fields.get(str(step))
        return _whole(field) if field else None
    bare = _bare(annotation)
    arguments = typing.get_args(bare)
    if typing.get_origin(bare) is dict:
        return arguments[1]
    return arguments[0] if arguments and isinstance(step, int) else None


def _whole(field: FieldInfo) -> object:
    """A field's annotation with the discriminator of its union."""
    return Annotated[field.annotation, field] if field.discriminator else field.annotation


def _members(annotation: object) -> Mapping[str, object]:
    """The members of a union by their tags; empty for everything else."""
    while typing.get_origin(annotation) is Annotated:
        target, *metadata = typing.get_args(annotation)
        told_by = next((each for each in metadata if isinstance(each, FieldInfo | Discriminator)), None)
        if told_by is not None and _is_union(target):
            return {tag: member for member in typing.get_args(target) for tag in _tags(member, told_by)}
        annotation = target
    return {}


def _tags(member: object, told_by: FieldInfo | Discriminator) -> Iterator[str]:
    if typing.get_origin(member) is Annotated:
        yield from (each.tag for each in typing.get_args(member)[1:] if isinstance(each, Tag))
    elif (model := _model(member)) and isinstance(told_by, FieldInfo):
        field = model.model_fields[str(told_by.discriminator)]
        yield from typing.get_args(field.annotation)


def json_schema(root: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a language's file, for editors. Pure."""
    schema = root.model_json_schema()
    schema["$schema"] = DIALECT
    return schema


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as the bytes of the shipped file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"

"""The pages that are made of the program itself: each verb's help, each language's keys, the Python interface. All are
Markdown, as the other pages are."""

from __future__ import annotations

import enum
import inspect
import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minigts import api
from minigts.cli import verbs

PROJECT = Path(__file__).parents[2]
LANGUAGES = {
    "topology": ("Keys of topologies", "topologies/schema.json", "topology-language.md"),
    "experiment": ("Keys of experiments", "experiments/schema.json", "experiment-language.md"),
    "policy": ("Keys of policies", "docs/policy.schema.json", "policy.md"),
}
"""Each language's page, its schema, and the page that explains it."""
EXIT_CODES = (
    "Exit codes are 0 ok, 1 a check failed, 2 wrong usage or input, 3 this machine lacks something, 130 and 143 "
    "interrupted."
)


# Verbs


def verb_pages() -> Iterator[tuple[str, str]]:
    """The name and the text of each verb's page."""
    for name in verbs.names():
        if not verbs.verb(name).help_entry(name).hidden:
            yield name, f"# minigts {name}\n\n{verb_text(name)}"


def verb_text(name: str, level: str = "##") -> str:
    """A verb's help, and that of those below it."""
    command: Any = verbs.verb(name).command_named(name)
    below = getattr(command, "commands", {})
    parts = [help_of(command, f"minigts {name}")]
    for word, each in below.items():
        parts.append(f"{level} minigts {name} {word}\n\n{help_of(each, f'minigts {name} {word}')}")
    return "\n".join(parts)


def help_of(command: Any, called: str) -> str:
    """Usage, text, examples, and a list of what may follow."""
    usage = command.get_usage(command.make_context(called, [], resilient_parsing=True))
    texts, examples = [], []
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph.startswith("Example:"):
            examples.append(f"    {paragraph.removeprefix('Example:').strip()}")
        else:
            texts.append(markdown(paragraph))
    lines = [f"    {usage.removeprefix('Usage:').strip()}", *texts]
    if examples:
        lines += ["For example:", "\n".join(examples)]
    rows = [row(each) for each in command.params if each.name != "help"]
    lines += rows
    return "\n\n".join(lines) + "\n"


def markdown(text: str) -> str:
    """A help text as Markdown: what Markdown would take for its own signs is written as it is."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]])", r"\\\1", part) for part in parts)


def row(parameter: Any) -> str:
    """An argument or an option with what it means, as an entry of a list of definitions."""
    about = markdown(parameter.help or "")
    if parameter.param_type_name == "argument":
        word = (parameter.metavar or parameter.name.upper()).strip("[]")
        return f"`{word}`\n: {about if parameter.required else f'Optional. {about}'}"
    words = [f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts)]
    value = "" if parameter.is_flag or parameter.count else f" `{parameter.metavar or kind(parameter)}`"
    default = parameter.default
    if not parameter.is_flag and default not in (None, (), []) and not callable(default) and "Default" not in about:
        about += f" Default: `{getattr(default, 'value', default)}`."
    return f"{', '.join(words)}{value}\n: {about}"


def kind(parameter: Any) -> str:
    """What stands for an option's value: the words that it may be, or its type."""
    annotation = parameter.type_descriptor.annotation
    kinds = [each for each in typing.get_args(annotation) if each is not type(None)] or [annotation]
    found = kinds[0]
    if typing.get_origin(annotation) is typing.Literal:
        return "|".join(str(each) for each in typing.get_args(annotation))
    if inspect.isclass(found) and issubclass(found, enum.Enum):
        return "|".join(str(each.value) for each in found)
    return {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(getattr(found, "__name__", ""), "TEXT")


def verb_index(linked: bool = True) -> str:
    """All verbs by their panels, each with the first paragraph of its help; for a man page without links."""
    lines = ["# Verbs", "", "Each verb explains itself with `--help`; these pages are made of the same texts."]
    lines += ["", EXIT_CODES]
    for panel in (verbs.LABS, verbs.EXPERIMENTS, verbs.CLASSROOM, verbs.PROJECT):
        lines += ["", f"## {panel}"]
        for name in verbs.names():
            listed: Any = verbs.verb(name).help_entry(name)
            if verbs.verb(name).panel == panel and not listed.hidden:
                about = markdown((listed.help or "").split("\n\n")[0])
                lines += ["", f"[`{name}`](verbs/{name}.md)" if linked else f"`minigts {name}`", f": {about}"]
    return "\n".join([*lines, ""])


# Languages


def keys_page(language: str) -> str:
    title, file, guide = LANGUAGES[language]
    schema = json.loads((PROJECT / file).read_text(encoding="utf-8"))
    headings = set(re.findall(r"^### `([^`]+)`", (PROJECT / "docs" / guide).read_text(encoding="utf-8"), re.M))
    lines = [f"# {title}", "", f"Every key of [the language](../docs/{guide}), as [its schema](../{file}) has it."]
    lines += ["A key's name leads to its section."]
    for path, key, required in keys(schema, schema, "", frozenset()):
        shown = f"`{path}`"
        if path in headings:
            anchor = re.sub(r"[^\w\- ]", "", path.lower())
            shown = f"[{shown}](../docs/{guide}#{anchor})"
        about = markdown(str(key.get("description", ""))) or "(no description)"
        value = values(key, schema)
        lines += ["", f"{shown}{', required' if required else ''}{f': {value}' if value else ''}", f": {about}"]
    return "\n".join([*lines, ""])


def keys(node: Any, schema: Any, path: str, seen: frozenset[str]) -> Iterator[tuple[str, Any, bool]]:
    """Each key below a node: its path (`hosts.*.memory`), its own node, and whether it is required."""
    for name, key in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, key, name in node.get("required", [])
        yield from below(key, schema, here, seen)


def below(key: Any, schema: Any, path: str, seen: frozenset[str]) -> Iterator[tuple[str, Any, bool]]:
    """The keys in what a key may hold: a mapping, a list (`[]`), a mapping of any names (`.*`)."""
    if (reference := key.get("$ref")) is not None:
        if reference not in seen:
            yield from keys(schema["$defs"][reference.rsplit("/", 1)[1]], schema, path, seen | {reference})
        return
    told: set[str] = set()
    for each in (*key.get("anyOf", ()), *key.get("oneOf", ()), *key.get("allOf", ())):
        for found in below(each, schema, path, seen):
            if found[0] not in told:
                told.add(found[0])
                yield found
    if isinstance(items := key.get("items"), dict):
        yield from below(items, schema, f"{path}[]", seen)
    if isinstance(others := key.get("additionalProperties"), dict):
        yield from below(others, schema, f"{path}.*", seen)
    if "properties" in key:
        yield from keys(key, schema, path, seen)


TYPES = {"object": "mapping", "array": "list", "string": "text", "integer": "whole number", "boolean": "true, false"}


def values(key: Any, schema: Any) -> str:
    """What a key's value may be, in a few words."""
    if "enum" in key:
        return ", ".join(f"`{each}`" for each in key["enum"])
    if "const" in key:
        return f"`{key['const']}`"
    if (reference := key.get("$ref")) is not None:
        return values(schema["$defs"][reference.rsplit("/", 1)[1]], schema)
    kinds = [values(each, schema) for each in (*key.get("anyOf", ()), *key.get("oneOf", ()), *key.get("allOf", ()))]
    kinds = [*dict.fromkeys(each for each in kinds if each)]
    if kinds:
        return " or ".join(kinds)
    found = key.get("type", "")
    if isinstance(found, list):
        return " or ".join(values({**key, "type": each}, schema) for each in found if each != "null")
    example = next(iter(key.get("examples", ())), None)
    shown = "" if found == "null" else TYPES.get(found, found)
    return f"{shown}, such as `{example}`" if shown and isinstance(example, str | int | float) else shown


# Python


def python_page() -> str:
    lines = ["# The Python interface", "", "What a program may import from `minigts.api`."]
    lines += ["[From Python](../docs/python.md) is the guide."]
    for name in api.__all__:
        found = getattr(api, name)
        if inspect.isclass(found):
            lines += class_text(name, found)
        elif callable(found):
            lines += ["", f"## `{name}`", "", f"    {name}{signature(found)}", "", doc(found)]
        else:
            lines += ["", f"## `{name}`", "", f"`{found!r}`"]
    return "\n".join([*lines, ""])


def class_text(name: str, found: type) -> list[str]:
    lines = ["", f"## `{name}`", "", doc(found)]
    own = {member for each in found.__mro__ if each.__module__.startswith("minigts") for member in vars(each)}
    for member, value in inspect.getmembers(found):
        if member.startswith("_") or member not in own:
            continue
        if isinstance(value, property):
            lines += ["", f"### `{name}.{member}`", "", f"    {member}: {returned(value.fget)}", "", doc(value)]
        elif inspect.isroutine(value):
            lines += ["", f"### `{name}.{member}()`", "", f"    {member}{signature(value)}", "", doc(value)]
    fields = getattr(found, "__dataclass_fields__", {})
    for field in fields.values():
        if not field.name.startswith("_"):
            lines += ["", f"### `{name}.{field.name}`", "", f"    {field.name}: {field.type}"]
    return lines


def signature(of: Any) -> str:
    """The parameters and the result, without quotation marks and addresses of objects."""
    return re.sub(r"'([\w.\[\], |]+)'", r"\1", re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(of))))


def returned(of: Any) -> str:
    return str(inspect.signature(of).return_annotation)


def doc(of: Any) -> str:
    return "\n\n".join(
        paragraph if paragraph.startswith("    ") else markdown(paragraph)
        for paragraph in (inspect.getdoc(of) or "").split("\n\n")
    )

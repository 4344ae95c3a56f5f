"""Variables in Compose files: `${NAME:-default}` in the text, and files of variables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from minigts.language.problems import shown
from minigts.topology.containers import VARIABLE

_ENTRY = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=(.*))?", re.ASCII)
_QUOTED = re.compile(r"""(?:'([^']*)'|"([^"\\$]*)")\s*(?:\#.*)?""", re.ASCII)


def substituted(written: str, variables: Mapping[str, str]) -> str:
    """The text with `$NAME` and `${NAME:-default}` substituted, as in the Compose Specification, *Interpolation*.
    Raises ValueError, also for a variable that has neither a value nor a default."""
    filled, rest = "", written
    while "$" in rest:
        before, _, rest = rest.partition("$")
        filled += before
        if rest.startswith("$"):
            filled, rest = f"{filled}$", rest[1:]
        elif rest.startswith("{"):
            inside, rest = _braced(rest, written)
            filled += _value_of(inside, written, variables)
        elif name := VARIABLE.match(rest):
            filled, rest = filled + _required(name[0], variables), rest[name.end() :]
        else:
            raise ValueError(f"{shown(written)} has a $ that begins no variable: write $$ for the character itself")
    return filled + rest


def _braced(rest: str, written: str) -> tuple[str, str]:
    """Split `rest` into the content of the braces at its beginning, and the text after them."""
    depth = 0
    for index, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:index], rest[index + 1 :]
    raise ValueError(f"{shown(written)} has a brace that does not end: write it as in ${{PORT:-8080}}")


def _value_of(inside: str, written: str, variables: Mapping[str, str]) -> str:
    name = VARIABLE.match(inside)
    action = inside[name.end() :] if name else ""
    if name is None or (action and not re.match(r":?[-?+]", action)):
        raise ValueError(f"{shown(written)} names no variable: write it as in ${{PORT:-8080}}")
    if not action:
        return _required(name[0], variables)
    value = variables.get(name[0])
    empty_is_none = action.startswith(":")
    kind, word = action[empty_is_none], action[1 + empty_is_none :]
    there = value is not None and not (empty_is_none and not value)
    if kind == "+":
        return substituted(word, variables) if there else ""
    if there:
        return value or ""
    if kind == "?":
        said = f": {substituted(word, variables)}" if word else ""
        raise ValueError(f"this host has no variable {name[0]}, which is required{said}")
    return substituted(word, variables)


def _required(name: str, variables: Mapping[str, str]) -> str:
    if name not in variables:
        raise ValueError(
            f"this host has no variable {name}: write it under the host's `environment:`, or a default, as in "
            f"${{{name}:-1}}; your shell's variables are not used"
        )
    return variables[name]


def entries(path: str, content: str) -> Iterator[tuple[str, str | None]]:
    """The variables in lines `NAME=VALUE`. Raises ValueError where Compose would substitute or unescape characters."""
    for number, line in enumerate(content.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(stripped)
        if entry is None:
            raise ValueError(f"{path}:{number}: {shown(stripped)} is no variable: write NAME=VALUE")
        value = None if entry[2] is None else entry[2].strip()
        if value is None:
            yield entry[1], None
        elif quoted := _QUOTED.fullmatch(value):
            yield entry[1], quoted[1] if quoted[2] is None else quoted[2]
        elif re.search(r"[\\$]|^['\"]", value):
            wanted = "a lab substitutes nothing here: write the value in single quotes, in one line"
            raise ValueError(f"{path}:{number}: {shown(stripped)}: {wanted}")
        else:
            yield entry[1], re.split(r"\s+#", value)[0].rstrip()

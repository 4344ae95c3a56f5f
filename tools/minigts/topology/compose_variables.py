"""What a Compose file leaves to its host: `${NAME:-default}` in its text, and files of variables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from minigts.language.problems import shown
from minigts.topology.containers import VARIABLE

_ENTRY = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=(.*))?", re.ASCII)
_QUOTED = re.compile(r"""(?:'([^']*)'|"([^"\\$]*)")\s*(?:\#.*)?""", re.ASCII)


def substituted(written: str, variables: Mapping[str, str]) -> str:
    """The text with its `$NAME` and `${NAME:-default}` filled in, as the Compose Specification has it, *Interpolation*;
    but a variable that is not there, and has no default, is an error. Raises ValueError."""
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
    """What stands in the braces that `rest` begins with, and what comes behind them."""
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
            f"${{{name}:-1}}; your shell's variables are not taken"
        )
    return variables[name]


def entries(path: str, content: str) -> Iterator[tuple[str, str | None]]:
    """`NAME=VALUE`, a line each; in quotes as it is. What Compose would fill in or escape is refused: ValueError."""
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
            wanted = "a lab fills in nothing here: write the value in single quotes, in one line"
            raise ValueError(f"{path}:{number}: {shown(stripped)}: {wanted}")
        else:
            yield entry[1], re.split(r"\s+#", value)[0].rstrip()

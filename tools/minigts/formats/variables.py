"""Variables of the caller's environment in a containerlab file, filled in as containerlab does before it reads YAML.
Pure.

`$NAME` and `${NAME}` are the value, and stay as `$NAME` where there is none or an empty one. `${NAME:-text}` and
`${NAME:=text}` are the text then, `${NAME-text}` and `${NAME=text}` where there is none, `${NAME+text}` and
`${NAME:+text}` where there is one. The text is plain, or one variable. `$$` is one `$`, and `$1` stays.
Source: the library's own reading (github.com/hellt/envsubst 0.2, parse/), with its habits: `${NAME:-}` is `$NAME`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

_Kind = Literal["text", "name", "begin", "end", "sign"]
_UNLESS_EMPTY, _WHERE_SET = (":-", ":="), ("+", ":+")


class Unclosed(ValueError):
    """A `${` without its `}` in the same line, which is an error of containerlab's, too."""

    def __init__(self, line: int) -> None:
        super().__init__("`${` has no `}` in its line; a plain `$` is written `$$`")
        self.line = line


class TooLong(ValueError):
    """The variables' values make the file too long."""


@dataclass
class Filled:
    """A file's text with its variables filled in, and their names by what was filled in."""

    text: str = ""
    values: dict[str, None] = field(default_factory=dict)
    """Those whose value in the environment was used."""
    defaults: dict[str, str] = field(default_factory=dict)
    """Those of which the file's own text was used, and the last such text."""
    unset: dict[str, None] = field(default_factory=dict)
    """Those that have no value, and no text of the file's."""


class _Token(NamedTuple):
    kind: _Kind
    text: str


def substitution(text: str, environment: Mapping[str, str], most: int) -> Filled:
    """The text as containerlab reads it. Raises Unclosed, and TooLong for more than `most` characters."""
    found, length = Filled(), 0
    pieces: list[str] = []
    tokens = list(_tokens(text))
    at = 0
    while at < len(tokens):
        kind, said = tokens[at]
        at += 1
        if kind == "name":
            piece = _value(said.removeprefix("$"), environment, found)
        elif kind == "begin" and at < len(tokens) and tokens[at].kind == "name":
            end = next(index for index in range(at, len(tokens)) if tokens[index].kind == "end")
            piece = _expression(tokens[at].text, tokens[at + 1 : end], environment, found)
            at = end + 1
        else:
            piece = said
        pieces.append(piece)
        length += len(piece)
        if length > most:
            raise TooLong(f"with its variables filled in it has more than {most} characters")
    found.text = "".join(pieces)
    return found


def _value(name: str, environment: Mapping[str, str], found: Filled) -> str:
    """The variable's value, or `$NAME`."""
    if value := environment.get(name):
        found.values[name] = None
        return value
    if name:
        found.unset[name] = None
    return f"${name}"


def _expression(name: str, rest: list[_Token], environment: Mapping[str, str], found: Filled) -> str:
    """The value of `${NAME…}`. What follows the name is signs and a text; of several signs the last one counts."""
    sign, otherwise = "", None
    for index, (kind, said) in enumerate(rest):
        if kind == "text":
            otherwise = _Token("text", "".join(each.text for each in rest[index:]))
            break
        if kind == "name":
            otherwise = _Token("name", said)
        else:
            sign = said
    value = environment.get(name)
    if not sign or otherwise is None:
        return _value(name, environment, found)
    if sign in _WHERE_SET:
        if value is None:
            return ""
    elif value not in (None, "", f"${name}") if sign in _UNLESS_EMPTY else value is not None:
        return _value(name, environment, found)
    if otherwise.kind == "name":
        return _value(otherwise.text.removeprefix("$"), environment, found)
    if sign not in _WHERE_SET:
        found.defaults[name] = otherwise.text
    else:
        found.values[name] = None
    return otherwise.text


def _tokens(text: str) -> Iterator[_Token]:
    """Text, names, and what stands between `${` and `}` sign by sign."""
    at = begun = 0
    while (at := text.find("$", at)) >= 0:
        following, after = text[at + 1 : at + 2], text[at + 2 : at + 3]
        if following == "$":
            yield _Token("text", text[begun : at + 1])
            at = begun = at + 2
        elif following == "{" and not after.isdecimal():
            yield _Token("text", text[begun:at])
            at = begun = yield from _inside(text, at)
        elif _is_of_a_name(following) and not following.isdecimal():
            end = _end_of_name(text, at + 1)
            if text[at:end] != "$_":
                yield _Token("text", text[begun:at])
                yield _Token("name", text[at:end])
                begun = end
            at = end
        else:
            at += 1
    yield _Token("text", text[begun:])


def _inside(text: str, at: int) -> Generator[_Token, None, int]:
    """The tokens from `${` to its `}`. Its value is the place behind that."""
    opened, at = at, at + 2
    yield _Token("begin", "${")
    while True:
        sign = text[at : at + 1]
        if sign in ("", "\n", "\r"):
            raise Unclosed(text.count("\n", 0, opened) + 1)
        if sign == "}":
            yield _Token("end", sign)
            return at + 1
        end = at + 1
        if sign == "$" or (at == opened + 2 and _is_of_a_name(sign)):
            end = _end_of_name(text, at + 1)
            yield _Token("name", text[at:end])
        elif sign in "+-=":
            yield _Token("sign", sign)
        elif sign == ":":
            end = at + 2
            yield _Token("sign" if text[at + 1 : end] in ("-", "=", "+") else "text", text[at:end])
        else:
            yield _Token("text", sign)
        at = end


def _end_of_name(text: str, at: int) -> int:
    while at < len(text) and _is_of_a_name(text[at]):
        at += 1
    return at


def _is_of_a_name(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()

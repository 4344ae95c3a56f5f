"""GML, the other format of the Internet Topology Zoo. It is read.

    graph [
      node [ id 0 label "Vienna" Latitude 48.2 Longitude 16.4 ]
      edge [ source 0 target 1 LinkSpeedRaw 10000000000.0 ]
    ]

Values are numbers, texts in double quotes with the character references of HTML, or lists in square brackets (M.
Himsolt, GML: A portable Graph File Format, 1997). A list in a node or an edge, such as `graphics`, is a value without a
text. A line that begins with `#` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple, NoReturn

from minigts.errors import InputError, Problem
from minigts.formats.graph_file import Element, GraphFile, network_of
from minigts.formats.network import Network
from minigts.language.problems import quote

_DEEPEST = 20
_LONGEST_VALUE = 200
_TOKEN = re.compile(
    r"""(?P<space>\s+|(?<=\n)\#[^\n]*|^\#[^\n]*)|(?P<text>"[^"]*")|(?P<sign>[\[\]])|(?P<word>[^\s"\[\]]+)""", re.ASCII
)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
_ENDS = frozenset({"id", "source", "target"})
_YES = "1"


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def read(text: str, file: str, *, leave_out: bool = False, part: int | None = None) -> Network:
    """The network of a GML file, or of a `part` of it. Raises InputError with every problem, each with its line."""
    return network_of(_Parser(text, file).graph(), file, leave_out=leave_out, part=part)


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._file, self._line = file, 1
        self._tokens = self._tokenised(text)
        self._found = GraphFile()

    def graph(self) -> GraphFile:
        """The file's one graph."""
        graphs = 0
        for key in self._tokens:
            value = self._value_of(key)
            if key.text != "graph":
                self._over(value, 1)
                continue
            graphs += 1
            if graphs > 1 or value.text != "[":
                self._wrong(
                    key.line, "a second graph" if graphs > 1 else "a graph is a list, as in graph [ node [ id 0 ] ]"
                )
            self._found.graph.line = key.line
            self._members(self._found.graph, is_graph=True)
        if not graphs:
            self._wrong(1, "no GML: it has no `graph [`")
        return self._found

    def _members(self, element: Element, *, is_graph: bool = False) -> None:
        """What stands in a list until its end."""
        for key in self._tokens:
            if key.text == "]" and key.kind == "sign":
                return
            value = self._value_of(key)
            if is_graph and key.text in ("node", "edge") and value.text == "[" and value.kind == "sign":
                inner = Element(key.line, {})
                (self._found.nodes if key.text == "node" else self._found.edges).append(inner)
                self._members(inner)
            elif value.kind == "sign":
                self._over(value, 2)
                element.data[key.text] = ""
            elif is_graph and key.text == "directed":
                self._found.is_directed = value.text == _YES
            elif key.text in _ENDS:
                element.attributes[key.text] = _plain(value)
            else:
                element.data[key.text] = _plain(value)
        self._wrong(element.line, "a list that begins here has no end, which is `]`")

    def _over(self, value: _Token, depth: int) -> None:
        """Leave out a value; of a list, all that is in it."""
        if value.kind != "sign":
            return
        if depth > _DEEPEST:
            self._wrong(value.line, f"lists in lists, more than {_DEEPEST} deep")
        for key in self._tokens:
            if key.text == "]" and key.kind == "sign":
                return
            self._over(self._value_of(key), depth + 1)
        self._wrong(value.line, "a list that begins here has no end, which is `]`")

    def _value_of(self, key: _Token) -> _Token:
        if key.kind != "word" or not _KEY.fullmatch(key.text):
            self._wrong(key.line, f'{quote(key.text)} where a key is wanted, as in `label "Vienna"`')
        value = next(self._tokens, None)
        if value is None or (value.kind, value.text) == ("sign", "]"):
            self._wrong(key.line, f"{quote(key.text)} has no value")
        return value

    def _tokenised(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self._wrong(self._line, "a text that begins here has no end, which is a double quote")
            if (kind := str(found.lastgroup)) != "space":
                yield _Token(kind, found[0], self._line)
            self._line += found[0].count("\n")
            at = found.end()

    def _wrong(self, line: int, message: str) -> NoReturn:
        raise InputError([Problem(self._file, line, message)])


def _plain(value: _Token) -> str:
    text = unescape(value.text[1:-1]) if value.kind == "text" else value.text
    return " ".join(text.split())[:_LONGEST_VALUE]

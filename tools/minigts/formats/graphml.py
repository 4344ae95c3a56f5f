"""GraphML, as the Internet Topology Zoo has it: nodes with coordinates, and edges. It is read.

    <node id="0"><data key="d33">Vienna</data><data key="d29">48.2</data><data key="d32">16.4</data></node>
    <edge source="0" target="1"><data key="d36">10000000000.0</data></edge>

Keys are named at the top of the file. yEd's drawings are left out.
"""

from __future__ import annotations

from xml.parsers import expat

from minigts.errors import InputError, Problem
from minigts.formats.graph_file import Element, GraphFile, network_of
from minigts.formats.network import Network


class _Parser:
    """The elements of a file, by a parser that refuses the file's own definitions."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.keys: dict[str, str] = {}
        self.found = GraphFile()
        self._open: list[Element] = []
        self._key: str | None = None
        self._text, self._begun = "", False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, text: str) -> None:
        try:
            self._parser.Parse(text.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise InputError([Problem(self._file, error.lineno, f"not XML: {expat.ErrorString(error.code)}")]) from None

    def _doctype(self, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        raise InputError([Problem(self._file, line, "a DOCTYPE: a GraphML file has no definitions of its own")])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.rpartition(":")[2]
        if not self._begun and kind != "graphml":
            line = self._parser.CurrentLineNumber
            wanted = "GraphML's first element is <graphml>"
            raise InputError([Problem(self._file, line, f"no GraphML: this file begins with <{name[:40]}>; {wanted}")])
        self._begun = True
        element = Element(self._parser.CurrentLineNumber, attributes)
        if kind == "key":
            named = attributes.get("attr.name") or attributes.get("yfiles.type", "")
            self.keys[attributes.get("id", "")] = named
        elif kind == "graph":
            self.found.graph = element
            self.found.is_directed = attributes.get("edgedefault") == "directed"
            self._open.append(element)
        elif kind in ("node", "edge"):
            (self.found.nodes if kind == "node" else self.found.edges).append(element)
            self._open.append(element)
        elif kind in ("hyperedge", "port"):
            self.found.others.append((self._parser.CurrentLineNumber, kind))
        elif kind == "data":
            self._key, self._text = attributes.get("key", ""), ""

    def _end(self, name: str) -> None:
        kind = name.rpartition(":")[2]
        if kind == "data" and self._key is not None and self._open:
            self._open[-1].data[self.keys.get(self._key, self._key)] = self._text.strip()[:200]
            self._key = None
        elif kind in ("graph", "node", "edge") and self._open:
            self._open.pop()

    def _characters(self, text: str) -> None:
        if self._key is not None and len(self._text) < 1000:
            self._text += text


def read(text: str, file: str, *, leave_out: bool = False, part: int | None = None) -> Network:
    """The network of a GraphML file, or of a `part` of it. Raises InputError with every problem, each with its line."""
    parsed = _Parser(file)
    parsed.feed(text)
    return network_of(parsed.found, file, leave_out=leave_out, part=part)

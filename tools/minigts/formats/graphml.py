"""GraphML, as the Internet Topology Zoo has it: nodes with coordinates, and edges. It is read.

    <node id="0"><data key="d33">Vienna</data><data key="d29">48.2</data><data key="d32">16.4</data></node>
    <edge source="0" target="1"><data key="d36">10000000000.0</data></edge>

Keys are named at the top of the file: `label`, `Latitude`, `Longitude`, and of edges `LinkSpeedRaw` in bit/s. A link's
delay is that of light in fibre between its ends (`geography`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from xml.parsers import expat

from minigts.errors import InputError, Problem
from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.formats.network import Link, Machine, Names, Network, Notes, title
from minigts.language.problems import require_none, shown

_LEAST_MBIT, _MOST_MBIT = 0.008, 100_000.0


@dataclass
class _Element:
    line: int
    attributes: dict[str, str]
    data: dict[str, str] = field(default_factory=dict)


class _Parser:
    """The elements of a file, by a parser that takes no definitions of the file's own."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.keys: dict[str, str] = {}
        self.graph = _Element(1, {})
        self.nodes: list[_Element] = []
        self.edges: list[_Element] = []
        self._open: list[_Element] = []
        self._key: str | None = None
        self._text = ""
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
        element = _Element(self._parser.CurrentLineNumber, attributes)
        if kind == "key":
            self.keys[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif kind == "graph":
            self.graph = element
            self._open.append(element)
        elif kind in ("node", "edge"):
            (self.nodes if kind == "node" else self.edges).append(element)
            self._open.append(element)
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


def read(text: str, file: str) -> Network:
    """The network of a GraphML file. Raises InputError with every problem, each with its line."""
    parsed, problems, notes = _Parser(file), list[Problem](), Notes()
    parsed.feed(text)
    names, machines, places = Names(notes), dict[str, Machine](), dict[str, Site]()
    for node in parsed.nodes:
        name = node.attributes.get("id", "")
        if name in machines:
            problems.append(
                Problem(file, node.line, f"node {shown(name)} is there twice, first on line {machines[name].line}")
            )
            continue
        label = node.data.get("label") or name
        machines[name] = Machine(names.of(label), node.line, location=label[:60] or None)
        place = _place(node, label)
        if place is None:
            notes.add("no coordinates", machines[name].name, "its links have no delay")
        else:
            places[name] = place
    links = []
    for edge in parsed.edges:
        ends = [edge.attributes.get(which, "") for which in ("source", "target")]
        unknown = [end for end in ends if end not in machines]
        if unknown:
            problems.append(Problem(file, edge.line, f"an edge to {shown(unknown[0])}, and there is no such node"))
        elif ends[0] == ends[1]:
            notes.add("an edge to itself", machines[ends[0]].name, "left out")
        else:
            both = [places[end] for end in ends if end in places]
            delay_ms = fibre_ms(distance_km(*both)) if len(both) == 2 else None
            rate = _rate(edge)
            joined = (machines[ends[0]].name, machines[ends[1]].name)
            delays = None if delay_ms is None else (delay_ms, delay_ms)
            links.append(Link(joined, edge.line, delay_ms=delays, rate_mbit=None if rate is None else (rate, rate)))
    if not machines and not problems:
        problems.append(
            Problem(file, 0, "no node in it; a GraphML file has <node id=…/> and <edge source=… target=…/>")
        )
    require_none(problems, file)
    name = title(parsed.graph.data.get("Network") or parsed.graph.attributes.get("id") or "", "graph")
    return Network(name, tuple(machines.values()), tuple(links), notes=notes.lines())


def _place(node: _Element, label: str) -> Site | None:
    north, east = (_number(node.data.get(key)) for key in ("Latitude", "Longitude"))
    if north is None or east is None or abs(north) > 90 or abs(east) > 180:
        return None
    return Site(label, north, east)


def _rate(edge: _Element) -> float | None:
    """In Mbit/s, within what a link can have."""
    raw = _number(edge.data.get("LinkSpeedRaw"))
    return None if raw is None or raw <= 0 else min(_MOST_MBIT, max(_LEAST_MBIT, raw / 1e6))


def _number(text: str | None) -> float | None:
    try:
        value = float(text[:40]) if text else None
    except ValueError:
        return None
    return value if value is not None and isfinite(value) else None

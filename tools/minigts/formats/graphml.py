"""GraphML, as the Internet Topology Zoo has it: nodes with coordinates, and edges. It is read.

    <node id="0"><data key="d33">Vienna</data><data key="d29">48.2</data><data key="d32">16.4</data></node>
    <edge source="0" target="1"><data key="d36">10000000000.0</data></edge>

Keys are named at the top of the file: `label`, `Latitude`, `Longitude`, and of edges `LinkSpeedRaw` in bit/s. A link's
delay is that of light in fibre between its ends (`geography`). An edge that is only planned is no link. yEd's drawings
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from xml.parsers import expat

from minigts.errors import InputError, Problem
from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.formats.keys import GRAPHML
from minigts.formats.network import Link, Machine, Names, Network, Notes, pieces, title
from minigts.language.problems import listed, require_none, shown

_LEAST_MBIT, _MOST_MBIT = 0.008, 100_000.0
_NOT_THERE = frozenset({"planned", "proposed", "future", "under construction"})
"""The values of `LinkStatus` in the Topology Zoo for edges that do not exist yet."""
_UNITS = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}
"""The prefixes in `LinkSpeedUnits`, in Mbit/s."""


@dataclass
class _Element:
    line: int
    attributes: dict[str, str]
    data: dict[str, str] = field(default_factory=dict)


class _Parser:
    """The elements of a file, by a parser that refuses the file's own definitions."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.keys: dict[str, str] = {}
        self.graph = _Element(1, {})
        self.nodes: list[_Element] = []
        self.edges: list[_Element] = []
        self.others: list[tuple[int, str]] = []
        """Lines and kinds of elements that a lab cannot have."""
        self._open: list[_Element] = []
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
        element = _Element(self._parser.CurrentLineNumber, attributes)
        if kind == "key":
            named = attributes.get("attr.name") or attributes.get("yfiles.type", "")
            self.keys[attributes.get("id", "")] = named
        elif kind == "graph":
            self.graph = element
            self._open.append(element)
        elif kind in ("node", "edge"):
            (self.nodes if kind == "node" else self.edges).append(element)
            self._open.append(element)
        elif kind in ("hyperedge", "port"):
            self.others.append((self._parser.CurrentLineNumber, kind))
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


def read(text: str, file: str, *, leave_out: bool = False) -> Network:
    """The network of a GraphML file. Raises InputError with every problem, each with its line."""
    parsed = _Parser(file)
    parsed.feed(text)
    reading = _Reading(file, leave_out)
    machines, places = reading.machines(parsed)
    links = tuple(reading.links(parsed, machines, places))
    kept = reading.connected(machines, links)
    if not machines and not reading.problems:
        wrong = "no node in it; a GraphML file has <node id=…/> and <edge source=… target=…/>"
        reading.problems.append(Problem(file, 0, wrong))
    require_none(reading.problems, file)
    name = title(parsed.graph.data.get("Network") or parsed.graph.attributes.get("id") or "", "graph")
    there = tuple(each for each in machines.values() if each.name in kept)
    return Network(name, there, tuple(link for link in links if link.ends[0] in kept), notes=reading.notes.lines())


class _Reading:
    def __init__(self, file: str, leave_out: bool) -> None:
        self._file, self._leave_out = file, leave_out
        self.problems, self.notes = list[Problem](), Notes()

    def _wrong(self, line: int, message: str) -> None:
        self.problems.append(Problem(self._file, line, message))

    def _lose(self, line: int, what: str, owner: str, why: str) -> None:
        if self._leave_out:
            self.notes.add(what, owner, f"left out: {why}")
        else:
            self._wrong(line, f"{what} of {shown(owner)} cannot be honoured: {why}. With --leave-out it is left out")

    def machines(self, parsed: _Parser) -> tuple[dict[str, Machine], dict[str, Site]]:
        """The machines of the file's nodes, and their sites, by node id."""
        for key in parsed.graph.data:
            if key != "Network":
                self.notes.add("the graph's data", key[:40], "left out")
        for line, kind in parsed.others:
            self._lose(line, f"a {kind}", "the graph", "a graph here has nodes, and edges between two of them")
        if parsed.graph.attributes.get("edgedefault") == "directed":
            self._lose(parsed.graph.line, "direction", "its edges", "a link carries both ways; each edge is one")
        names, machines, places = Names(self.notes), dict[str, Machine](), dict[str, Site]()
        for node in parsed.nodes:
            name = node.attributes.get("id", "")
            if name in machines:
                self._wrong(node.line, f"node {shown(name)} is there twice, first on line {machines[name].line}")
                continue
            for key in node.data.keys() - GRAPHML["node"].keys():
                self.notes.add("the nodes' data", key[:40], "left out")
            label = node.data.get("label") or name
            machines[name] = Machine(names.of(label), node.line, location=label[:60] or None)
            place = _place(node, label)
            if place is None:
                self.notes.add("no coordinates", machines[name].name, "its links have no delay")
            else:
                places[name] = place
        return machines, places

    def links(self, parsed: _Parser, machines: Mapping[str, Machine], places: Mapping[str, Site]) -> Iterator[Link]:
        for edge in parsed.edges:
            ends = [edge.attributes.get(which, "") for which in ("source", "target")]
            unknown = [end for end in ends if end not in machines]
            if unknown:
                self._wrong(edge.line, f"an edge to {shown(unknown[0])}, and there is no such node")
                continue
            joined = (machines[ends[0]].name, machines[ends[1]].name)
            owner = "-".join(joined)
            status = edge.data.get("LinkStatus", "")
            if status.lower() in _NOT_THERE:
                self.notes.add(f"LinkStatus {status}", owner, "it is not there yet, and no link here")
                continue
            if ends[0] == ends[1]:
                self._lose(edge.line, "an edge to itself", joined[0], "a link joins two hosts")
                continue
            self._judge(edge, owner)
            both = [places[end] for end in ends if end in places]
            delay_ms = fibre_ms(distance_km(*both)) if len(both) == 2 else None
            rate = self._rate(edge, owner)
            delays = None if delay_ms is None else (delay_ms, delay_ms)
            yield Link(joined, edge.line, delay_ms=delays, rate_mbit=None if rate is None else (rate, rate))

    def _judge(self, edge: _Element, owner: str) -> None:
        """Report an edge's data. An unknown key is lost, since it may be a delay, a loss or a rate."""
        for key, value in edge.data.items():
            known = GRAPHML["edge"].get(key)
            if known is None:
                self._lose(edge.line, f"the key {shown(key)}", owner, "it is not known")
            elif known.fate == "note" or (key == "LinkStatus" and value):
                self.notes.add("the edges' data", key[:40], "left out")

    def _rate(self, edge: _Element, owner: str) -> float | None:
        """The rate in Mbit/s. One out of range is lost."""
        raw, written = edge.data.get("LinkSpeedRaw"), edge.data.get("LinkSpeed")
        speed = _number(raw)
        mbit = None if speed is None else speed / 1e6
        if mbit is None and (speed := _number(written)) is not None:
            factor = _UNITS.get(edge.data.get("LinkSpeedUnits", "").strip().upper()[:1])
            mbit = None if factor is None else speed * factor
        if mbit is None:
            if (text := raw or written) is not None:
                self._lose(edge.line, f"the speed {shown(text)}", owner, "it is no number of bit/s")
            return None
        if mbit == 0:
            self.notes.add("a speed of 0", owner, "its rate is not limited")
            return None
        if not _LEAST_MBIT <= mbit <= _MOST_MBIT:
            self._lose(edge.line, f"the speed {mbit:g} Mbit/s", owner, "a link has 8 kbit/s to 100 Gbit/s")
            return None
        return mbit

    def connected(self, machines: Mapping[str, Machine], links: Sequence[Link]) -> frozenset[str]:
        """The hosts of the largest connected piece. Others are a problem, or left out."""
        apart = pieces(machines.values(), links)
        largest = max(apart, key=len, default=[])
        lines = {each.name: each.line for each in machines.values()}
        for piece in apart:
            if piece is not largest:
                why = "no link joins them to the others" if len(piece) > 1 else "no link joins it to the others"
                self._lose(lines[piece[0]], f"host {listed(piece)}", "the graph", why)
        return frozenset(largest)


def _place(node: _Element, label: str) -> Site | None:
    north, east = (_number(node.data.get(key)) for key in ("Latitude", "Longitude"))
    if north is None or east is None or abs(north) > 90 or abs(east) > 180:
        return None
    return Site(label, north, east)


def _number(text: str | None) -> float | None:
    try:
        value = float(text[:40]) if text else None
    except ValueError:
        return None
    return value if value is not None and isfinite(value) else None

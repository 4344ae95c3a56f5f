"""A graph of nodes and edges, of whichever file, as a network: hosts at places, and links as long as light takes. Pure.

GraphML and GML have the same keys in the Internet Topology Zoo: `label`, `Latitude`, `Longitude`, and of edges
`LinkSpeedRaw` in bit/s. A link's delay is that of light in fibre between its ends (`geography`). An edge that is only
planned is no link. A graph in several parts, which no link joins, gives a lab for each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from minigts.errors import Problem
from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.formats.keys import GRAPHML
from minigts.formats.network import Names, Network, NetworkLink, NetworkMachine, Notes, pieces, title
from minigts.language.problems import list_names, quote, require_none

_MOST_KM = 100_000
_LEAST_MBIT, _MOST_MBIT = 0.008, 100_000.0
_NOT_THERE = frozenset({"planned", "proposed", "future", "under construction"})
"""The values of `LinkStatus` in the Topology Zoo for edges that do not exist yet."""
_UNITS = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}
"""The prefixes in `LinkSpeedUnits`, in Mbit/s."""


@dataclass
class Element:
    """The graph, a node or an edge. `attributes` are `id`, `source` and `target`; `data` is all else that it says."""

    line: int
    attributes: dict[str, str]
    data: dict[str, str] = field(default_factory=dict)


@dataclass
class GraphFile:
    """What a file has in it."""

    graph: Element = field(default_factory=lambda: Element(1, {}))
    nodes: list[Element] = field(default_factory=list)
    edges: list[Element] = field(default_factory=list)
    others: list[tuple[int, str]] = field(default_factory=list)
    """Lines and kinds of elements that a lab cannot have."""
    is_directed: bool = False


def network_of(parsed: GraphFile, file: str, *, leave_out: bool = False, part: int | None = None) -> Network:
    """The network of a graph, or of its `part`, 1 for the largest. Raises InputError with every problem, each with its
    line."""
    reading = _Reading(file, leave_out)
    machines, places = reading.machines(parsed)
    links = tuple(reading.links(parsed, machines, places))
    kept = reading.part(machines, links, part)
    if not machines and not reading.problems:
        reading.problems.append(
            Problem(file, 0, "no node in it; a graph has nodes, and edges with a source and a target")
        )
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

    def _lose(self, line: int, what: str, owner: str, why: str, instead: str = "") -> None:
        if self._leave_out:
            self.notes.add(what, owner, f"left out: {why}")
            return
        what_to_do = f"With --leave-out it is left out{instead}"
        self._wrong(line, f"{what} of {quote(owner)} cannot be honoured: {why}. {what_to_do}")

    def machines(self, parsed: GraphFile) -> tuple[dict[str, NetworkMachine], dict[str, Site]]:
        """The machines of the file's nodes, and their sites, by node id."""
        for key in parsed.graph.data:
            if key != "Network":
                self.notes.add("the graph's data", key[:40], "left out")
        for line, kind in parsed.others:
            self._lose(line, f"a {kind}", "the graph", "a graph here has nodes, and edges between two of them")
        if parsed.is_directed:
            self._lose(parsed.graph.line, "direction", "its edges", "a link carries both ways; each edge is one")
        names, machines, places = Names(self.notes), dict[str, NetworkMachine](), dict[str, Site]()
        for node in parsed.nodes:
            name = node.attributes.get("id", "")
            if name in machines:
                self._wrong(node.line, f"node {quote(name)} is there twice, first on line {machines[name].line}")
                continue
            for key in node.data.keys() - GRAPHML["node"].keys():
                self.notes.add("the nodes' data", key[:40], "left out")
            label = node.data.get("label") or node.data.get("name") or name
            machines[name] = NetworkMachine(names.unique_name(label), node.line, location=label[:60] or None)
            place = _place(node, label)
            if place is None:
                self.notes.add("no coordinates", machines[name].name, "its links have no delay")
            else:
                places[name] = place
        return machines, places

    def links(
        self, parsed: GraphFile, machines: Mapping[str, NetworkMachine], places: Mapping[str, Site]
    ) -> Iterator[NetworkLink]:
        for edge in parsed.edges:
            ends = [edge.attributes.get(which, "") for which in ("source", "target")]
            unknown = [end for end in ends if end not in machines]
            if unknown:
                self._wrong(edge.line, f"an edge to {quote(unknown[0])}, and there is no such node")
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
            delay_ms = self._of_length(edge, owner)
            if delay_ms is None and len(both) == 2:
                delay_ms = fibre_ms(distance_km(*both))
            rate = self._rate(edge, owner)
            delays = None if delay_ms is None else (delay_ms, delay_ms)
            yield NetworkLink(joined, edge.line, delay_ms=delays, rate_mbit=None if rate is None else (rate, rate))

    def _judge(self, edge: Element, owner: str) -> None:
        """Report an edge's data. An unknown key is lost, since it may be a delay, a loss or a rate."""
        for key, value in edge.data.items():
            known = GRAPHML["edge"].get(key)
            if known is None:
                self._lose(edge.line, f"the key {quote(key)}", owner, "it is not known")
            elif known.fate == "note" or (key == "LinkStatus" and value):
                self.notes.add("the edges' data", key[:40], "left out")

    def _of_length(self, edge: Element, owner: str) -> float | None:
        """The delay of an edge that says the distance of its ends in km, `dist`; None where it says none."""
        if (written := edge.data.get("dist")) is None:
            return None
        km = _number(written)
        if km is None or not 0 <= km <= _MOST_KM:
            self._lose(edge.line, f"dist {quote(written)}", owner, f"it is no distance in km, up to {_MOST_KM}")
            return None
        return fibre_ms(km)

    def _rate(self, edge: Element, owner: str) -> float | None:
        """The rate in Mbit/s. One out of range is lost."""
        raw, written = edge.data.get("LinkSpeedRaw"), edge.data.get("LinkSpeed")
        speed = _number(raw)
        mbit = None if speed is None else speed / 1e6
        if mbit is None and (speed := _number(written)) is not None:
            factor = _UNITS.get(edge.data.get("LinkSpeedUnits", "").strip().upper()[:1])
            mbit = None if factor is None else speed * factor
        if mbit is None:
            if (text := raw or written) is not None:
                self._lose(edge.line, f"the speed {quote(text)}", owner, "it is no number of bit/s")
            return None
        if mbit == 0:
            self.notes.add("a speed of 0", owner, "its rate is not limited")
            return None
        if not _LEAST_MBIT <= mbit <= _MOST_MBIT:
            self._lose(edge.line, f"the speed {mbit:g} Mbit/s", owner, "a link has 8 kbit/s to 100 Gbit/s")
            return None
        return mbit

    def part(
        self, machines: Mapping[str, NetworkMachine], links: Sequence[NetworkLink], wanted: int | None
    ) -> frozenset[str]:
        """The hosts of one connected part; without `wanted` of the largest, and then the others are a problem, or left
        out."""
        parts = sorted(pieces(machines.values(), links), key=len, reverse=True)
        if wanted is not None and not 1 <= wanted <= max(1, len(parts)):
            counted = "one part" if len(parts) == 1 else f"{len(parts)} parts"
            self._wrong(0, f"the graph has {counted}, and no part {wanted}")
            return frozenset()
        if len(parts) < 2:
            return frozenset(*parts)
        lines = {each.name: each.line for each in machines.values()}
        chosen = (wanted or 1) - 1
        for number, part in enumerate(parts):
            if number != chosen:
                them = "them" if len(part) > 1 else "it"
                what, why = f"host {list_names(part)}", f"no link joins {them} to the others"
                if wanted is not None:
                    self.notes.add(what, "the graph", f"left out: {why}")
                else:
                    self._lose(lines[part[0]], what, "the graph", why, f"; --part {number + 1} takes {them} alone")
        self.notes.add(f"part {chosen + 1}", "the graph", f"{len(parts[chosen])} of its {len(machines)} hosts")
        return frozenset(parts[chosen])


def _place(node: Element, label: str) -> Site | None:
    north, east = (
        _number(node.data.get(zoo) or node.data.get(hub)) for zoo, hub in (("Latitude", "lat"), ("Longitude", "lon"))
    )
    if north is None or east is None or abs(north) > 90 or abs(east) > 180:
        return None
    return Site(label, north, east)


def _number(text: str | None) -> float | None:
    try:
        value = float(text[:40]) if text else None
    except ValueError:
        return None
    return value if value is not None and isfinite(value) else None

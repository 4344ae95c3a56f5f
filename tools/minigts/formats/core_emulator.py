"""CORE's scenarios (`NAME.xml`): nodes, switches, and links with their addresses and options. They are read.

    <scenario><devices><device id="1" name="n1" type="PC"/> … </devices>
    <links><link node1="1" node2="4">
      <iface1 id="0" name="eth0" mac="00:00:00:aa:00:05" ip4="10.0.1.1" ip4_mask="24" ip6="a:1::1" ip6_mask="64"/>
      <options delay="5000" bandwidth="100000000" loss="0.0" dup="0" jitter="0" unidirectional="0" buffer="0"/>
    </link></links></scenario>

Times are microseconds, rates bit/s (daemon/core/xml/corexml.py). The file's own definitions are refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface, IPv6Interface
from math import isfinite
from xml.parsers import expat

from minigts.errors import InputError, Problem
from minigts.formats.attached import Attached, WantedLink, fit_links
from minigts.formats.containerlab_commands import IPV6_ON
from minigts.formats.keys import CORE
from minigts.formats.lines import FileLines
from minigts.formats.network import WAYS, Names, Network, NetworkLink, NetworkMachine, Ways, ports, title
from minigts.language.blocks import MAC, OWN_MACS
from minigts.language.interface_names import port_name
from minigts.language.problems import did_you_mean, quote

FIRST = "scenario"
_SWITCHES = ("SWITCH", "HUB")
_LEFT_OUT = (
    "session_origin",
    "session_options",
    "session_metadata",
    "default_services",
    "networks",
    "devices",
    "links",
)
_ROUTING = (
    "OSPF",
    "BGP",
    "RIP",
    "Babel",
    "PIM",
    "zebra",
    "FRR",
    "BIRD",
    "Xpimd",
    "XORP",
    "XRIP",
    "OLSR",
    "NHDP",
    "SMF",
)
_OF_OPTIONS: Mapping[str, tuple[str, float]] = {
    "delay": ("delay_ms", 1e-3),
    "jitter": ("jitter_ms", 1e-3),
    "bandwidth": ("rate_mbit", 1e-6),
    "loss": ("loss_percent", 1.0),
    "dup": ("duplicate_percent", 1.0),
}
"""The options that a link here can have: its field, and what makes the field's unit of theirs."""
_MOST_RATE = 100_000.0
"""The rate in Mbit/s of a direction without one, where the other has one."""


@dataclass
class _Element:
    kind: str
    line: int
    attributes: Mapping[str, str]
    inside: list[_Element] = field(default_factory=list)

    def of(self, kind: str) -> Iterator[_Element]:
        return (each for each in self.inside if each.kind == kind)

    def every(self, around: str, kind: str) -> list[_Element]:
        return [each for group in self.of(around) for each in group.of(kind)]


class _Parser:
    """A tree of elements, by a parser that refuses the file's own definitions."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[_Element] = [_Element("", 1, {})]
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype

    def scenario(self, text: str) -> _Element:
        try:
            self._parser.Parse(text.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise InputError([Problem(self._file, error.lineno, f"not XML: {expat.ErrorString(error.code)}")]) from None
        (first,) = self._open[0].inside
        if first.kind != FIRST:
            raise InputError([Problem(self._file, first.line, f"no CORE scenario: it begins with <{first.kind[:40]}>")])
        return first

    def _doctype(self, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        raise InputError([Problem(self._file, line, "a DOCTYPE: a scenario has no definitions of its own")])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = _Element(name, self._parser.CurrentLineNumber, attributes)
        self._open[-1].inside.append(element)
        self._open.append(element)
        if len(self._open) > 20:
            raise InputError([Problem(self._file, element.line, "elements in elements, more than 20 deep")])

    def _end(self, _name: str) -> None:
        self._open.pop()


def read(text: str, file: str, *, leave_out: bool = False) -> Network:
    """The network of a scenario. Raises InputError with every problem, each with its line."""
    scenario = _Parser(file).scenario(text)
    reading = _Reading(FileLines(file, leave_out=leave_out))
    reading.nodes(scenario)
    reading.others(scenario)
    return reading.network(scenario)


class _Reading:
    def __init__(self, lines: FileLines) -> None:
        self._lines = lines
        self._names = Names(lines.notes)
        self._machines: dict[str, NetworkMachine] = {}
        self._lost: set[str] = set()
        """Nodes that a lab cannot have; their links go with them."""
        self._ipv6: dict[str, list[tuple[int, str]]] = {}
        """By machine, its links by number, each with the machine's IPv6 address on it."""

    def nodes(self, scenario: _Element) -> None:
        for each in scenario.every("devices", "device"):
            self._judge(each, "device", each.attributes.get("name", ""), besides=("id",))
            self._services(each)
            self._add(each, is_switch=False)
        for each in scenario.every("networks", "network"):
            kind, name = each.attributes.get("type", ""), each.attributes.get("name", "")
            if kind not in _SWITCHES:
                self._lines.lose(each.line, f"network type {quote(kind)}", name, "only switches and hubs are here")
                self._lost.add(each.attributes.get("id", ""))
                continue
            if kind == "HUB":
                self._lines.notes.add("HUB", name, "a switch here, which sends to others no more than it must")
            self._add(each, is_switch=True)

    def _add(self, element: _Element, *, is_switch: bool) -> None:
        number, name = element.attributes.get("id", ""), element.attributes.get("name", "")
        if not number or number in self._machines:
            self._lines.wrong(element.line, f"node {quote(number)} has no number, or that of another node")
            return
        self._machines[number] = NetworkMachine(
            self._names.unique_name(name or f"n{number}"), element.line, is_switch=is_switch
        )

    def _services(self, device: _Element) -> None:
        name = device.attributes.get("name", "")
        for kind in ("services", "configservices"):
            for each in device.every(kind, "service"):
                service = each.attributes.get("name", "")[:40]
                why = "left out: every host forwards, has static routes, and runs no service of CORE's"
                if service.startswith(_ROUTING):
                    why = "left out: hosts have static routes; `routing: ospf` of minigts has OSPF"
                self._lines.notes.add(f"service {service}", name, why)

    def others(self, scenario: _Element) -> None:
        """What a scenario has beside nodes and links."""
        for each in scenario.inside:
            if each.kind in _LEFT_OUT:
                continue
            if not each.inside and each.kind != "session_hooks":
                continue
            why = "it may set addresses, routes and links; set them by `run:`"
            self._lines.lose(each.line, each.kind[:40], "the scenario", why)

    def _judge(self, element: _Element, place: str, owner: str, besides: Sequence[str] = ()) -> None:
        for key, value in element.attributes.items():
            known = CORE[place].get(key)
            if key in besides or not value or (known is not None and value in ("0", "0.0", "None")):
                continue
            if known is None:
                self._lines.lose(
                    element.line, f"the key {quote(key)}", owner, f"it is not known{did_you_mean(key, CORE[place])}"
                )
            elif known.fate == "error":
                self._lines.lose(element.line, key, owner, known.why)
            elif known.fate == "note":
                self._lines.notes.add(key, owner[:40], f"left out: {known.why}")

    def network(self, scenario: _Element) -> Network:
        attached = self._links(scenario.every("links", "link"))
        found = fit_links({each.name: each for each in self._machines.values()}, attached)
        self._lines.settle(found)
        if not self._machines and not self._lines.problems:
            self._lines.wrong(0, "no node in it: a scenario has devices and networks")
        machines = [replace(each, run=tuple(self._run(each, found.links))) for each in self._machines.values()]
        written = scenario.attributes.get("name", "")
        name = title(written if not written.startswith("/") else "", "core")
        return self._lines.network(name, machines, found.links)

    def _links(self, elements: Sequence[_Element]) -> list[Attached]:
        """The links. Two of one direction each, between the same interfaces, are one."""
        found: dict[tuple[str, ...], Attached] = {}
        for each in elements:
            numbers = [each.attributes.get(key, "") for key in ("node1", "node2")]
            if self._lost.intersection(numbers):
                continue
            if unknown := [number for number in numbers if number not in self._machines]:
                self._lines.wrong(each.line, f"a link to node {quote(unknown[0])}, and there is no such node")
                continue
            if numbers[0] == numbers[1]:
                self._lines.wrong(each.line, "a link from a node to itself")
                continue
            made, key = self._link(each, numbers)
            back = (*key[2:], *key[:2])
            if back in found and (first := found[back]) is not None:
                found[back] = replace(first, link=_both(first.link, made.link))
            else:
                found[key] = made
        return list(found.values())

    def _link(self, element: _Element, numbers: Sequence[str]) -> tuple[Attached, tuple[str, ...]]:
        names = (self._machines[numbers[0]].name, self._machines[numbers[1]].name)
        owner, line = "-".join(names), element.line
        interfaces = [next(element.of(kind), _Element(kind, line, {})) for kind in ("iface1", "iface2")]
        wanted, networks, macs = [], [], []
        for name, each in zip(names, interfaces, strict=True):
            self._judge(each, "interface", name, besides=("nem",))
            address = self._address(each, name)
            networks.append(address.network if address is not None else None)
            index = each.attributes.get("id", "")
            number = int(index) if index.isascii() and index.isdigit() and len(index) < 6 else None
            called = each.attributes.get("name") or (None if number is None else port_name(number))
            wanted.append(WantedLink((line,), called, number, address.ip if address is not None else None))
            macs += self._mac(each, name)
        ways = self._ways(element, owner)
        network = next((each for each in networks if each is not None), None)
        link = replace(NetworkLink((names[0], names[1]), line, macs=tuple(macs)), **ways)  # type: ignore[arg-type]
        key = (numbers[0], interfaces[0].attributes.get("id", ""), numbers[1], interfaces[1].attributes.get("id", ""))
        for name, each in zip(names, interfaces, strict=True):
            if (six := self._six(each)) is not None:
                self._ipv6.setdefault(name, []).append((line, six))
        return Attached(link, (wanted[0], wanted[1]), network, (line,)), key

    def _ways(self, element: _Element, owner: str) -> dict[str, Ways]:
        found: dict[str, Ways] = {}
        for options in element.of("options"):
            self._judge(options, "options", owner)
            one_way = options.attributes.get("unidirectional") == "1"
            for key, (name, factor) in _OF_OPTIONS.items():
                written = options.attributes.get(key) or "0"
                value = _number(written)
                if value is None or value < 0:
                    self._lines.wrong(options.line, f"{quote(written)} is no {key}")
                elif value:
                    unlimited = _MOST_RATE if name == "rate_mbit" else 0.0
                    found[name] = (value * factor, unlimited if one_way else value * factor)
        return found

    def _address(self, interface: _Element, owner: str) -> IPv4Interface | None:
        written = interface.attributes.get("ip4")
        if not written:
            return None
        try:
            return IPv4Interface(f"{written[:20]}/{interface.attributes.get('ip4_mask', '24')[:3]}")
        except ValueError:
            self._lines.wrong(
                interface.line, f"{quote(written)} of {owner} is no address with the length of its network"
            )
            return None

    def _six(self, interface: _Element) -> str | None:
        written = interface.attributes.get("ip6")
        if not written:
            return None
        try:
            return str(IPv6Interface(f"{written[:60]}/{interface.attributes.get('ip6_mask', '64')[:3]}"))
        except ValueError:
            self._lines.wrong(interface.line, f"{quote(written)} is no IPv6 address with the length of its network")
            return None

    def _mac(self, interface: _Element, owner: str) -> list[tuple[str, str]]:
        written = (interface.attributes.get("mac") or "").lower()
        if not written:
            return []
        if not MAC.fullmatch(written):
            self._lines.wrong(interface.line, f"{quote(written)} is not a MAC address of one machine")
        elif written.startswith(OWN_MACS):
            self._lines.lose(interface.line, "mac", owner, f"{OWN_MACS} begins the addresses that minigts gives")
        else:
            return [(owner, written)]
        return []

    def _run(self, machine: NetworkMachine, links: Sequence[NetworkLink]) -> Iterator[str]:
        """The commands that set a host's IPv6 addresses."""
        of_line = dict(self._ipv6.get(machine.name, ()))
        if machine.is_switch or not of_line:
            return
        yield IPV6_ON
        for link, names in ports(links):
            for end, name in zip(link.ends, names, strict=True):
                if end == machine.name and link.line in of_line:
                    yield shlex.join(["ip", "address", "add", of_line[link.line], "dev", name])
        self._lines.notes.add("ip6", machine.name, "`run:` here; IPv6 has no routes to other links, and IPv4 has")


def _both(there: NetworkLink, back: NetworkLink) -> NetworkLink:
    """One link of two that carry one direction each."""
    ways = {}
    for key in WAYS:
        first, second = getattr(there, key), getattr(back, key)
        if first is not None or second is not None:
            nothing = _MOST_RATE if key == "rate_mbit" else 0.0
            ways[key] = (nothing if first is None else first[0], nothing if second is None else second[0])
    return replace(there, **ways)  # type: ignore[arg-type]  # each is a field of Ways


def _number(text: str) -> float | None:
    try:
        value = float(text[:40])
    except ValueError:
        return None
    return value if isfinite(value) else None

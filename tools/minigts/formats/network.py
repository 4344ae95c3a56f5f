"""The model that all formats share: machines, links, and notes on what could not be imported. It becomes a topology."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from typing import Literal, NamedTuple

from minigts.foreign import UNPRINTABLE
from minigts.formats.limits import LONGEST_DESCRIPTION, LONGEST_NOTE, MOST_NOTES
from minigts.language import interface_names
from minigts.language.problems import Location, list_names
from minigts.language.quantities import MEMORY_MB
from minigts.language.tree import Data, Tree

_USUAL_LINKS, _LARGER_SUBNETS = 1024, "10.64.0.0/10"
"""How many links the default of `subnets:` holds, and a block for 16384."""
Ways = tuple[float, float]
"""A number for each direction of a link: from its first end to its second, and back."""


@dataclass(frozen=True)
class NetworkMachine:
    """A host or a switch. `line` is its line in the file."""

    name: str
    line: int = 1
    is_switch: bool = False
    location: str | None = None
    cpus: float | None = None
    """A whole number of processors, or a share of one."""
    memory_mb: int | None = None
    controller: str | None = None
    """A switch's controller: `builtin`, or HOST:PORT, or ADDRESS:PORT."""
    environment: tuple[tuple[str, str], ...] = ()
    run: tuple[str, ...] = ()
    """Commands for a shell, which run once the links are there."""
    files: tuple[tuple[str, str], ...] = ()
    """What is copied to the host: a path relative to the file's directory, and one on the host."""
    packages: tuple[str, ...] = ()
    """Debian's packages that it has besides."""
    asn: int | None = None
    """The number of its autonomous system."""
    management: IPv4Address | None = None
    """Its address in a network for management. A lab of minigts' has none; netlab's nodes know theirs."""


@dataclass(frozen=True)
class NetworkLink:
    """A link between two machines. None means that the file leaves a setting open."""

    ends: tuple[str, str]
    line: int = 1
    name: str | None = None
    delay_ms: Ways | None = None
    jitter_ms: Ways | None = None
    loss_percent: Ways | None = None
    rate_mbit: Ways | None = None
    mtu: int | None = None
    corrupt_percent: Ways | None = None
    duplicate_percent: Ways | None = None
    reorder_percent: Ways | None = None
    subnet: str | None = None
    """The IPv4 network, whose first addresses the ends have in their order, unless `addresses` has others."""
    addresses: tuple[tuple[str, str], ...] = ()
    """The ends' own addresses in `subnet`, by machine."""
    macs: tuple[tuple[str, str], ...] = ()
    """The ends' own MAC addresses, by machine."""
    interfaces: tuple[tuple[str, str], ...] = ()
    """The names of the ends' interfaces, by machine: eth2 is a port's own, any other stands beside it."""
    relationship: Literal["customer", "peer", "provider"] | None = None
    """What the second end is to the first."""

    @property
    def turned(self) -> NetworkLink:
        """The same link from its other end."""
        given = {key: value for key in WAYS if (value := getattr(self, key)) is not None}
        return replace(self, ends=self.ends[::-1], **{key: value[::-1] for key, value in given.items()})


WAYS: Mapping[str, tuple[str, str]] = {
    "delay_ms": ("delay", "ms"),
    "jitter_ms": ("jitter", "ms"),
    "loss_percent": ("loss", "%"),
    "rate_mbit": ("rate", "mbit"),
    "corrupt_percent": ("corrupt", "%"),
    "duplicate_percent": ("duplicate", "%"),
    "reorder_percent": ("reorder", "%"),
}
"""The fields of a link with a number for each direction, each with its key in a topology, and its unit."""


@dataclass(frozen=True)
class Network:
    """A file of any format. With `sites` a link without a delay has that between its ends' locations.

    `notes` are on decoration and on what was left out on purpose; `lost` is what affects the network and the format to
    be written cannot express.
    """

    name: str
    machines: tuple[NetworkMachine, ...]
    links: tuple[NetworkLink, ...]
    description: str = ""
    routing: str = "routed"
    sites: bool = False
    subnets: str = ""
    """The block of the links' addresses; empty: the usual one."""
    light: bool = False
    """Whether hosts are light ones, which share kernels, in virtual time."""
    time: str = ""
    """`real` where a setting exists in real time only; else empty."""
    schedule: tuple[Mapping[str, Data], ...] = ()
    """What links do over time, in the words of a topology."""
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Written(NamedTuple):
    """A file's text, notes on what differs in it, and what of the network it lacks."""

    text: str
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass
class Notes:
    """Notes on what is not imported, grouped by it: `imageId` of h1, h2 is one note."""

    _of: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, what: str, owner: str, why: str) -> None:
        """`what` stands at `owner` in the file; `why` says what becomes of it."""
        owners = self._of.setdefault((what, why), [])
        if owner not in owners:
            owners.append(owner)

    def lines(self) -> tuple[str, ...]:
        """The notes as lines, no more and no longer than a person reads."""
        found = [f"{what} of {_listed(owners)}: {why}" for (what, why), owners in self._of.items()]
        kept = [_shown(line.replace("\n", " "))[:LONGEST_NOTE] for line in found[:MOST_NOTES]]
        return (*kept, *((f"and {len(found) - MOST_NOTES} more",) if len(found) > MOST_NOTES else ()))


def memory_of_host(size_mb: float, what: str, owner: str, notes: Notes) -> float:
    """The memory of a host for a container's limit, in 2^20 bytes: a host has a kernel of its own, which needs some,
    too. `what` says it in the file."""
    least = MEMORY_MB.parse(MEMORY_MB.least)
    if size_mb >= least:
        return size_mb
    notes.add(what, owner, f"{least:g} MB here, the least that a host with a kernel of its own has")
    return least


_OF_A_PLACE = re.compile(r"(?:link|links|the) [a-z0-9 ]{1,30}", re.ASCII)


def _listed(owners: Sequence[str]) -> str:
    """As `listed`; `link 8` and `the file` as they are."""
    return owners[0] if len(owners) == 1 and _OF_A_PLACE.fullmatch(owners[0]) else list_names(owners)


class Names:
    """Valid and unique names in a lab for names of another language."""

    def __init__(self, notes: Notes, longest: int = 15) -> None:
        self._notes, self._longest = notes, longest
        self._given: dict[str, str] = {}

    def unique_name(self, foreign: str) -> str:
        """A unique name of lower-case letters, digits and hyphens, a letter first. A change in more than case is
        noted."""
        plain = re.sub(r"[^a-z0-9-]+", "-", foreign.lower(), flags=re.ASCII).strip("-")
        if not plain or not plain[0].isalpha():
            plain = f"n{plain}"
        plain = plain[: self._longest].rstrip("-")
        name, number = plain, 2
        while name in self._given:
            suffix = f"-{number}"
            name, number = f"{plain[: self._longest - len(suffix)].rstrip('-')}{suffix}", number + 1
        self._given[name] = foreign
        if name != foreign.lower():
            self._notes.add(f"the name {foreign[:40]!r}", name, "written so, since a name here is shorter and plainer")
        return name


def subnets_for(links: int) -> str:
    """The block of addresses for so many links; empty where the usual one holds them."""
    return "" if links <= _USUAL_LINKS else _LARGER_SUBNETS


def title(foreign: str, otherwise: str) -> str:
    """A topology's name for a file's name; `otherwise` where nothing of it is left."""
    return re.sub(r"[^a-z0-9-]+", "-", foreign.lower(), flags=re.ASCII).strip("-")[:40].rstrip("-") or otherwise


def number(value: float) -> str:
    """The value in digits, to nine decimals, without needless zeros: `21.75`, `0`."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def tree(network: Network) -> Tree:
    """The network as a document of the topology language, with the lines of the file from which it was read."""
    made = Tree(data=_document(network))
    made.lines[()] = 1
    hosts = [each for each in network.machines if not each.is_switch]
    switches = [each for each in network.machines if each.is_switch]
    for kind, machines in (("hosts", hosts), ("switches", switches)):
        for machine in machines:
            made.lines[kind, machine.name] = machine.line
    for index, link in enumerate(network.links):
        place: Location = ("links", index)
        made.lines[place] = link.line
    made.notes = network.notes
    return made


def text(network: Network) -> str:
    """The network as a topology file, with the notes as comments on top."""
    document = _document(network)
    lines = [*(f"# {note}" for note in network.notes)]
    for key, value in document.items():
        match value:
            case dict() if key in ("hosts", "switches"):
                lines += [f"{key}:", *(f"  {name}:{_flow(settings)}" for name, settings in value.items())]
            case list():
                lines += [f"{key}:", *(f"  -{_flow(entry)}" for entry in value)]
            case _:
                lines.append(f"{key}:{_flow(value)}")
    return "\n".join(lines) + "\n"


def _document(network: Network) -> dict[str, Data]:
    hosts = {each.name: _machine(each) for each in network.machines if not each.is_switch}
    switches = {each.name: _machine(each) for each in network.machines if each.is_switch}
    document: dict[str, Data] = {"name": network.name}
    if network.description:
        document["description"] = _shown(network.description)[:LONGEST_DESCRIPTION]
    if network.routing != "routed":
        document["routing"] = network.routing
    if network.sites:
        document["delays"] = "sites"
    if network.subnets:
        document["subnets"] = network.subnets
    if time := network.time or ("virtual" if network.light else ""):
        document["time"] = time
    if network.light:
        document["defaults"] = {"host": {"light": "true"}}
    document["hosts"] = dict(hosts)
    if switches:
        document["switches"] = dict(switches)
    if network.links:
        document["links"] = [_link(each) for each in network.links]
    if network.schedule:
        document["schedule"] = [dict(step) for step in network.schedule]
    return document


def _shown(text: str) -> str:
    """The text with replacements for characters that cannot be shown, which a topology may not have."""
    return UNPRINTABLE.sub("\ufffd", text)


def _machine(machine: NetworkMachine) -> Data:
    settings: dict[str, Data] = {}
    if machine.location is not None:
        settings["location"] = _shown(machine.location)
    if machine.cpus is not None:
        settings["cpus"] = f"{machine.cpus:g}"
    if machine.memory_mb is not None:
        settings["memory"] = f"{machine.memory_mb}MB"
    if machine.controller is not None:
        settings["controller"] = machine.controller
    if machine.environment:
        settings["environment"] = {name: _shown(value) for name, value in machine.environment}
    if machine.files:
        settings["files"] = [{"source": source, "target": target} for source, target in machine.files]
    if machine.packages:
        settings["packages"] = [*machine.packages]
    if machine.asn is not None:
        settings["asn"] = str(machine.asn)
    if machine.run:
        settings["run"] = [_shown(command) for command in machine.run]
    return settings or None


def _link(link: NetworkLink) -> Data:
    settings: dict[str, Data] = {"ends": list(link.ends)}
    if link.relationship is not None:
        settings["relationship"] = link.relationship
    if link.name is not None:
        settings["name"] = link.name
    for name, (key, unit) in WAYS.items():
        if (ways := getattr(link, name)) is not None:
            to, back = (f"{number(way)}{unit}" for way in ways)
            settings[key] = to if to == back else {"to": to, "from": back}
    if link.mtu is not None:
        settings["mtu"] = str(link.mtu)
    if link.subnet is not None:
        settings["subnet"] = link.subnet
    if link.addresses:
        settings["addresses"] = dict(link.addresses)
    if link.macs:
        settings["macs"] = dict(link.macs)
    if link.interfaces:
        settings["interfaces"] = dict(link.interfaces)
    return settings


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./-]*|[0-9][0-9.]*(?:[A-Za-z%]+)?", re.ASCII)
_NOT_PLAIN = frozenset(("null", "Null", "NULL"))


def _flow(value: Data) -> str:
    """YAML in one line, to follow its key: empty for None, else with a space in front."""
    return f" {_inner(value)}" if value is not None else ""


def _inner(value: Data) -> str:
    match value:
        case None:
            return "null"
        case str():
            return value if _PLAIN.fullmatch(value) and value not in _NOT_PLAIN else _quoted(value)
        case list():
            return f"[{', '.join(map(_inner, value))}]"
        case _:
            return f"{{{', '.join(f'{key}: {_inner(each)}' for key, each in value.items())}}}"


def flow(value: Data) -> str:
    """Data as YAML in one line."""
    return _inner(value)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def pieces(machines: Iterable[NetworkMachine], links: Iterable[NetworkLink]) -> list[list[str]]:
    """The connected pieces of a network: names of machines, in the order of `machines`."""
    piece_of = {each.name: [each.name] for each in machines}
    for link in links:
        one, other = (piece_of[end] for end in link.ends)
        if one is not other:
            small, large = sorted((one, other), key=len)
            large += small
            piece_of.update(dict.fromkeys(small, large))
    order = {name: place for place, name in enumerate(piece_of)}
    return [sorted(each, key=order.__getitem__) for each in {id(each): each for each in piece_of.values()}.values()]


NO_ROUTES = "so hosts have no routes here, and reach the far ends of their links alone (`routing: neighbours`)"


def routing_and_time(machines: Sequence[NetworkMachine], links: Iterable[NetworkLink], notes: Notes) -> tuple[str, str]:
    """The routing, and the time, of another tool's network: where no link joins some nodes to the others, hosts have no
    routes, as in that tool; a share of a processor is of real time."""
    hosts = {machine.name for machine in machines if not machine.is_switch}
    apart = [piece for piece in pieces(machines, links) if not hosts.isdisjoint(piece)]
    routing, time = "routed", ""
    if len(apart) > 1:
        routing = "neighbours"
        for piece in sorted(apart, key=len)[:-1]:
            notes.add("pieces", "the file", f"no link joins {list_names(piece)} to the others, {NO_ROUTES}")
    if shares := [machine.name for machine in machines if machine.cpus is not None and machine.cpus < 1]:
        time = "real"
        for name_of_host in shares:
            why = "`time: real` here, since a share of a processor exists only in real time"
            notes.add("cpu", name_of_host, why)
    return routing, time


def ports(links: Iterable[NetworkLink]) -> Iterator[tuple[NetworkLink, tuple[str, str]]]:
    """Yield each link with the names of its ports on their machines: eth1, eth2, …"""
    them = [*links]
    yield from zip(them, interface_names.end_names(them), strict=True)

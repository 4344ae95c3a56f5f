"""Files of the GÉANT Testbed Service, `.dsl` and `.gts`, in the dialects of its versions 1 to 5: read, and written.

    Pair {
      description = "two hosts"
      host { id="h1" location="AMS" port { id="p1" } }
      host { id="h2" location="BRA" port { id="p1" } }
      link { id="l1" capacity=100 port { id="src" } port { id="dst" } }
      adjacency h1.p1, l1.src
      adjacency h2.p1, l1.dst
    }

A link of a lab is a link of GTS with the two adjacencies that join its ports to those of two machines.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from minigts.errors import InputError, Problem
from minigts.formats import gts_syntax
from minigts.formats.gts_evaluate import Adjacency, Attribute, Block, evaluate
from minigts.formats.gts_syntax import MOST_ERRORS
from minigts.formats.network import (
    WAYS,
    Names,
    Network,
    NetworkLink,
    NetworkMachine,
    Notes,
    Ways,
    Written,
    number,
    ports,
    title,
)
from minigts.language.interface_names import number_of
from minigts.language.problems import did_you_mean, list_names, quote, require_none
from minigts.language.quantities import RATE_MBIT, TIME_MS

_ID = re.compile(r"[A-Za-z$][A-Za-z0-9]*", re.ASCII)
_ID_HINT = "an id: letters and digits, a letter or $ first"
_HOSTS = ("host", "baremetalserver")
_SWITCHES = ("ofx", "vsi")
_LINK, _PORT = "link", "port"
_KINDS = (*_HOSTS, *_SWITCHES, _LINK)
_OUTSIDE = ("externaldomain", "externalport", "extdomain", "ed")
_FLAVOUR = re.compile(r"c([1-9][0-9]?)r([1-9][0-9]{0,2})h([0-9]{1,4})", re.ASCII)
FLAVOURS = ("c1r1h10", "c2r2h10", "c2r2h20", "c3r3h30", "c4r4h20")
"""Cores, GB of memory, GB of disk."""
_USED = {
    "host": ("id", "location", "flavorId"),
    "baremetalserver": ("id", "location", "flavorId"),
    "link": ("id", "capacity", "bandwidth", "lineRate", "delay"),
    "port": ("id", "mode", "lineRate"),
    "ofx": ("id", "location", "controllerPort", "controllerIPv4"),
    "vsi": ("id", "location"),
    "controller": ("ipv4", "port"),
    "": ("id", "description"),
}
"""The attributes that are honoured, by kind; the empty kind is the topology itself."""
_PROVIDED = "the plan has the addresses"
_NOTED = {
    "imageid": "every host has the same image; `packages:` and `run:` add to it",
    "cpuspeed": "a host's processor is the machine's; `processor:` models a slow one in virtual time",
    "fabricipv4": _PROVIDED,
    "fabricsubnetmaskv4": _PROVIDED,
    "switchipv4addr": _PROVIDED,
    "switchipv4mask": _PROVIDED,
    "switchmode": "every switch is Open vSwitch with the kernel's data path",
    "logicalport": "ports are numbered by their links",
    "description": "a topology alone has one",
    "name": "the id is its name",
    "version": "nothing here depends on it",
    "provider": "nothing here depends on it",
    "mode": "a port is what its link makes it",
    "direction": "a link has both directions",
    "vlan": "links carry frames as they are",
    "vlanid": "links carry frames as they are",
    "type": "its kind says it",
    "location": "a link lies where its ends are",
}
"""Attributes of GTS that cannot be honoured, in lower case, and why."""
_LARGEST_MBIT_NUMBER = 100_000
"""A rate without a unit is in Mbit/s up to this number, as in GTS's own editor; above it is in bit/s. Links of GTS had
100 kbit/s to 100 Gbit/s."""
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kKmMgG]?)(?:bps|bit/s|bit|b/s|b)?", re.ASCII)
_FACTORS = {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}


@dataclass
class _Resource:
    """A machine or a link with its ports, by their ids in lower case."""

    block: Block
    kind: str
    id: str
    ports: dict[str, _PortOf] = field(default_factory=dict)

    @property
    def is_link(self) -> bool:
        return self.kind == _LINK


@dataclass
class _PortOf:
    resource: _Resource
    id: str
    line: int
    control: bool
    rate_mbit: float | None
    joined: Adjacency | None = None
    other: _PortOf | None = None


def read(text: str, file: str) -> Network:
    """The network of a GTS file. Raises InputError with every problem, each with its line."""
    problems: list[Problem] = []
    top = gts_syntax.require_something(gts_syntax.parse(text, file), file)
    block = evaluate(top, file, problems)
    reading = _Reading(file, problems)
    network = reading.network(block)
    require_none(problems, file)
    return network


class _Reading:
    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file, self._problems = file, problems
        self._notes = Notes()
        self._failed: set[str] = set()
        """Ports of adjacencies in which something is wrong."""

    def _wrong(self, line: int, message: str) -> None:
        self._problems.append(Problem(self._file, line, message))
        if len(self._problems) >= MOST_ERRORS:
            raise InputError(self._problems)

    def network(self, top: Block) -> Network:
        own, _ = self._attributes(top, "", top.kind)
        resources = self._resources(top)
        self._join(top, resources)
        names = Names(self._notes)
        machines = {key: names.unique_name(each.id) for key, each in resources.items() if not each.is_link}
        links = [*self._links(resources, machines)]
        controls = self._controls(resources, machines, links)
        made = [self._machine(each, machines[key], controls) for key, each in resources.items() if not each.is_link]
        if not made and not self._problems:
            self._wrong(top.line, 'no host in it; a topology has one at the least, as in host { id="h1" }')
        return Network(
            name=title(own["id"].text if "id" in own else top.kind, "gts"),
            machines=tuple(made),
            links=tuple(link for _, link in links),
            description=own["description"].text if "description" in own else "",
            routing="neighbours",
            sites=True,
            notes=self._notes.lines(),
        )

    def _attributes(self, block: Block, kind: str, owner: str) -> tuple[dict[str, Attribute], bool]:
        """The attributes by their names in `_USED`, in any case; others become notes, or problems where they are
        mistyped."""
        used = {name.lower(): name for name in _USED[kind]}
        found: dict[str, Attribute] = {}
        fine = True
        for attribute in block.attributes.values():
            key = attribute.name.lower()
            key = (
                "controlleripv4" if key == "controllerpv4" and kind == "ofx" else key
            )  # as a generator of such files writes it
            if key in used:
                if used[key] in found:
                    self._wrong(
                        attribute.line,
                        f"{quote(attribute.name)} of {owner} is given twice, first on line {found[used[key]].line}",
                    )
                found[used[key]] = attribute
            elif key in _NOTED:
                self._notes.add(attribute.name, owner, _NOTED[key])
            elif hint := did_you_mean(
                attribute.name, (*_USED[kind], *(each for each in ("imageId", "cpuSpeed") if kind in _HOSTS))
            ):
                self._wrong(attribute.line, f"{owner} has no {quote(attribute.name)}{hint}")
                fine = False
            else:
                self._notes.add(attribute.name[:40], owner, "not known here")
        return found, fine

    def _id(self, block: Block, kind: str, owner: str) -> str | None:
        attribute = next((each for each in block.attributes.values() if each.name.lower() == "id"), None)
        if attribute is None:
            self._wrong(block.line, f'this {kind}{owner} has no id, as in {kind} {{ id="{kind[0]}1" }}')
            return None
        if not isinstance(attribute.value, str) or not _ID.fullmatch(attribute.value) or len(attribute.value) > 100:
            self._wrong(attribute.line, f"{quote(attribute.text)} is not {_ID_HINT}")
            return None
        return attribute.value

    def _resources(self, top: Block) -> dict[str, _Resource]:
        """The resources by their ids in lower case, since GTS ignores case."""
        found: dict[str, _Resource] = {}
        for block in top.blocks:
            kind = block.kind.lower()
            if kind in _OUTSIDE:
                self._wrong(
                    block.line,
                    f"{quote(block.kind)}: nothing outside the lab can be linked; remove it, and the links that lead "
                    "there; a host gets a way out by `gateway: true` in the topology that `minigts import` makes",
                )
            elif kind not in _KINDS:
                inner = "; ports stand in their host, switch or link" if kind == _PORT else ""
                hint = inner or did_you_mean(block.kind, _KINDS) or f"; kinds are {list_names(_KINDS)}"
                self._wrong(block.line, f"no kind of resource {quote(block.kind)}{hint}")
            elif (name := self._id(block, kind, "")) is not None:
                if (first := found.get(name.lower())) is not None:
                    self._wrong(block.line, f"the id {quote(name)} is given twice, first on line {first.block.line}")
                    continue
                found[name.lower()] = resource = _Resource(block, kind, name)
                self._ports(resource)
        return found

    def _ports(self, resource: _Resource) -> None:
        for adjacency in resource.block.adjacencies:
            self._wrong(
                adjacency.line, f"an adjacency in {resource.id}: adjacencies stand beside hosts and links, not in them"
            )
        for block in resource.block.blocks:
            kind = block.kind.lower()
            if kind == "controller" and resource.kind in _SWITCHES:
                continue
            if kind != _PORT:
                hint = did_you_mean(block.kind, (_PORT, "controller")) or "; it has ports only"
                self._wrong(block.line, f"no {quote(block.kind)} in a {resource.kind}{hint}")
                continue
            name = self._id(block, _PORT, f" of {resource.id}")
            if name is None:
                continue
            if (first := resource.ports.get(name.lower())) is not None:
                self._wrong(block.line, f"{resource.id} has the port {quote(name)} twice, first on line {first.line}")
                continue
            own, _ = self._attributes(block, _PORT, f"{resource.id}.{name}")
            control = "mode" in own and own["mode"].text.upper() == "CONTROL"
            rate = self._rate(own.get("lineRate"))
            resource.ports[name.lower()] = _PortOf(resource, name, block.line, control, rate)
        if (
            resource.is_link
            and len(resource.ports) != 2
            and all(each.kind.lower() == _PORT for each in resource.block.blocks)
        ):
            self._wrong(
                resource.block.line,
                f"link {resource.id} has {len(resource.ports)} ports; a link has two, as in "
                'port { id="src" } port { id="dst" }',
            )

    def _join(self, top: Block, resources: Mapping[str, _Resource]) -> None:
        for adjacency in top.adjacencies:
            before = len(self._problems)
            self._join_one(adjacency, resources)
            if len(self._problems) > before:
                self._failed.update(end.lower() for end in adjacency.ends)

    def _join_one(self, adjacency: Adjacency, resources: Mapping[str, _Resource]) -> None:
        ends = [self._port(name, adjacency, resources) for name in adjacency.ends]
        first, second = ends
        if first is None or second is None:
            return
        if first.resource.is_link == second.resource.is_link:
            what = "two links' ports" if first.resource.is_link else "two machines' ports"
            self._wrong(
                adjacency.line,
                f"joins {' and '.join(adjacency.ends)}, {what} (lines {first.line} and {second.line}); "
                "an adjacency joins a machine's to a link's",
            )
            return
        again = [port for port in (first, second) if port.joined is not None]
        for port in again:
            assert port.joined is not None
            where = f"{port.resource.id}.{port.id}"
            self._wrong(
                adjacency.line, f"port {where} (line {port.line}) is joined twice, first on line {port.joined.line}"
            )
        if not again:
            first.joined = second.joined = adjacency
            first.other, second.other = second, first

    def _port(self, written: str, adjacency: Adjacency, resources: Mapping[str, _Resource]) -> _PortOf | None:
        name, _, port = written.partition(".")
        resource = resources.get(name.lower())
        if not port or "." in port:
            self._wrong(
                adjacency.line, f"{quote(written)} is not a port: write its resource's id and its own, as in h1.port1"
            )
        elif resource is None:
            known = [each.id for each in resources.values()]
            hint = did_you_mean(name, known) or f"; there are {list_names(known)}"
            self._wrong(adjacency.line, f"adjacency to {quote(written)}: no host, switch or link {quote(name)}{hint}")
        elif port.lower() not in resource.ports:
            known = [each.id for each in resource.ports.values()]
            self._wrong(
                adjacency.line,
                f"adjacency to {quote(written)}: {resource.id} (line {resource.block.line}) has no port {quote(port)}; "
                f"its ports are {list_names(known)}",
            )
        else:
            return resource.ports[port.lower()]
        return None

    def _links(
        self, resources: Mapping[str, _Resource], machines: Mapping[str, str]
    ) -> Iterator[tuple[_Resource, NetworkLink]]:
        names = Names(self._notes, 40)
        for resource in resources.values():
            if not resource.is_link:
                continue
            own, _ = self._attributes(resource.block, _LINK, resource.id)
            rates = [self._rate(own.get(name)) for name in ("capacity", "bandwidth", "lineRate")]
            delay_ms = self._delay(own.get("delay"))
            near = [*resource.ports.values()]
            if len(near) != 2:
                continue
            loose = [port for port in near if port.other is None]
            for port in loose:
                if f"{resource.id}.{port.id}".lower() not in self._failed:
                    where = f"its port {quote(port.id)} (line {port.line})"
                    self._wrong(resource.block.line, f"link {resource.id}: no adjacency for {where}: it leads nowhere")
            if loose:
                continue
            far = [port.other for port in near if port.other is not None]
            ends = (machines[far[0].resource.id.lower()], machines[far[1].resource.id.lower()])
            if ends[0] == ends[1]:
                lines = " and ".join(str(port.joined.line) for port in near if port.joined is not None)
                self._wrong(
                    resource.block.line, f"link {resource.id} joins {far[0].resource.id} to itself, on lines {lines}"
                )
                continue
            limits = [rate for rate in (*rates, *(port.rate_mbit for port in (*near, *far))) if rate is not None]
            rate: Ways | None = (min(limits), min(limits)) if limits else None
            yield (
                resource,
                NetworkLink(
                    ends, resource.block.line, names.unique_name(resource.id), delay_ms=delay_ms, rate_mbit=rate
                ),
            )

    def _controls(
        self,
        resources: Mapping[str, _Resource],
        machines: Mapping[str, str],
        links: list[tuple[_Resource, NetworkLink]],
    ) -> dict[str, str]:
        """By switch, the host at its CONTROL port. Such a link is kept only where it is the host's only link there."""
        found: dict[str, str] = {}
        for resource, link in links[::-1]:  # so that the first one stays
            far = [port.other for port in resource.ports.values() if port.other is not None]
            control = next((port for port in far if port.control and port.resource.kind in _SWITCHES), None)
            if control is None:
                continue
            other = far[1] if far[0] is control else far[0]
            if other.resource.kind not in _HOSTS:
                continue
            host = machines[other.resource.id.lower()]
            found[machines[control.resource.id.lower()]] = host
            rest = [each for each in links if each[1] is not link]
            if _reaches(host, machines[control.resource.id.lower()], [each for _, each in rest], machines, resources):
                links.remove((resource, link))
                self._notes.add(
                    "the control link",
                    resource.id,
                    "its host reaches the switch over another link, and its controller there",
                )
        return found

    def _machine(self, resource: _Resource, name: str, controls: Mapping[str, str]) -> NetworkMachine:
        own, _ = self._attributes(resource.block, resource.kind, resource.id)
        location = _location(own["location"].text) if "location" in own else None
        if resource.kind in _HOSTS:
            cpus, memory_mb = self._flavour(own.get("flavorId"), resource.id)
            return NetworkMachine(name, resource.block.line, location=location or None, cpus=cpus, memory_mb=memory_mb)
        controller = self._controller(resource, own, controls.get(name))
        return NetworkMachine(
            name, resource.block.line, is_switch=True, location=location or None, controller=controller
        )

    def _flavour(self, attribute: Attribute | None, owner: str) -> tuple[int | None, int | None]:
        """Processors and MB of memory."""
        if attribute is None:
            return None, None
        found = _FLAVOUR.fullmatch(attribute.text.lower())
        if found is None or int(found[1]) > 64:
            self._wrong(
                attribute.line,
                f"{quote(attribute.text)} is not a flavour: write cores, GB of memory and of disk, as in "
                f"{list_names(FLAVOURS)}",
            )
            return None, None
        self._notes.add("the disk of flavorId", owner, "a host's disk grows as it is used")
        return int(found[1]), int(found[2]) * 1024

    def _controller(self, resource: _Resource, own: Mapping[str, Attribute], host: str | None) -> str | None:
        """The switch's controller: on the host at the CONTROL port, else on the switch itself; None without one."""
        address, port = own.get("controllerIPv4"), own.get("controllerPort")
        inner = [block for block in resource.block.blocks if block.kind.lower() == "controller"]
        for block in inner:
            told, _ = self._attributes(block, "controller", f"{resource.id}.controller")
            address, port = address or told.get("ipv4"), port or told.get("port")
        if inner[1:]:
            self._notes.add("a further controller", resource.id, f"a switch has one, that on line {inner[0].line}")
        if port is not None and not (
            port.text.isascii() and port.text.isdigit() and len(port.text) <= 5 and 0 < int(port.text) < 65536
        ):
            self._wrong(port.line, f"{quote(port.text)} is not a port: write a whole number from 1 to 65535")
            return None
        if address is not None and not _is_address(address.text):
            self._wrong(address.line, f"{quote(address.text)} is not an IPv4 address, as in 192.0.2.1")
            return None
        if host is not None:
            if address is not None:
                self._notes.add(
                    address.name, resource.id, f"its controller is looked for on {host}, where its control port leads"
                )
            return f"{host}:{int(port.text)}" if port is not None else host
        if address is None and port is None and not inner:
            return None
        if address is not None:
            why = "nobody has that address here; `builtin` is the controller, or write HOST:PORT"
            self._notes.add(f"{address.name} {address.text}", resource.id, why)
        return "builtin"

    def _rate(self, attribute: Attribute | None) -> float | None:
        """The rate in Mbit/s."""
        if attribute is None:
            return None
        found = _RATE.fullmatch(attribute.text.strip()[:40])
        rate = None
        if found is not None:
            plain = float(found[1])
            bare = not re.search("[A-Za-z]", attribute.text)
            rate = plain if bare and plain <= _LARGEST_MBIT_NUMBER else plain * _FACTORS[found[2].lower()]
        try:
            return None if rate is None else RATE_MBIT.parse(f"{number(rate)}mbit")
        except ValueError:
            rate = None
        finally:
            if rate is None:
                self._wrong(
                    attribute.line,
                    f"{quote(attribute.text)} is not a rate from 8 kbit/s to 100 Gbit/s: write Mbit/s as in 100, "
                    'or "1gbit"',
                )
        return None

    def _delay(self, attribute: Attribute | None) -> Ways | None:
        if attribute is None:
            return None
        try:
            delay_ms = TIME_MS.parse(attribute.text)
        except ValueError as error:
            self._wrong(attribute.line, f"delay: {error}, in quotation marks")
            return None
        return delay_ms, delay_ms


def _location(text: str) -> str:
    """A location; sites are in upper case, in which versions of GTS differ."""
    return text.upper() if re.fullmatch("[A-Za-z]{3}", text, re.ASCII) else text


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.IPv4Address(text))
    except ValueError:
        return False


def _reaches(
    host: str,
    switch: str,
    links: Iterable[NetworkLink],
    machines: Mapping[str, str],
    resources: Mapping[str, _Resource],
) -> bool:
    """Whether one of the links joins the host to the switch's segment: to the switch, or to one that is joined to
    it."""
    switches = {machines[key] for key, each in resources.items() if each.kind in _SWITCHES}
    near: dict[str, list[str]] = {}
    for link in links:
        for here, there in (link.ends, link.ends[::-1]):
            near.setdefault(here, []).append(there)
    segment, to_see = {switch}, [switch]
    while to_see:
        further = [each for each in near.get(to_see.pop(), ()) if each in switches and each not in segment]
        segment.update(further)
        to_see += further
    return any(each in segment for each in near.get(host, ()))


def write(network: Network) -> Written:
    """The network as a GTS file, with notes on what the language lacks. All else is read again unchanged."""
    notes, lost = Notes(), Notes()
    ids = _Ids(notes)
    machine_ids = {each.name: ids.of(each.name) for each in network.machines}
    named = [*ports(network.links)]
    link_ids = [
        ids.of(link.name if link.name is not None else f"l{index}") for index, link in enumerate(network.links, 1)
    ]
    lines = [f"{_word(_Ids(notes).of(network.name))} {{", f"  id = {_quoted(network.name)}"]
    if network.description:
        lines.append(f"  description = {_quoted(network.description)}")
    for machine in network.machines:
        own = [
            number_of(port)
            for link, names in named
            for port, end in zip(names, link.ends, strict=True)
            if end == machine.name
        ]
        lines += _machine_lines(machine, machine_ids[machine.name], own, notes, lost)
    for (link, _), name in zip(named, link_ids, strict=True):
        lines.append(
            f'  link {{ id={_quoted(name)}{_link_words(link, name, lost)} port {{ id="src" }} port {{ id="dst" }} }}'
        )
    for (link, names), name in zip(named, link_ids, strict=True):
        for end, own_port, port in zip(link.ends, names, ("src", "dst"), strict=True):
            lines.append(f"  adjacency {_word(machine_ids[end])}.p{number_of(own_port)}, {_word(name)}.{port}")
    if network.routing != "neighbours":
        notes.add(f"routing: {network.routing}", network.name, "in GTS a host reaches its neighbours alone")
    return Written("\n".join([*lines, "}"]) + "\n", notes.lines(), lost.lines())


class _Ids:
    """GTS's ids for names of a lab: without hyphens, each once."""

    def __init__(self, notes: Notes) -> None:
        self._notes, self._given = notes, set[str]()

    def of(self, name: str) -> str:
        plain = name.replace("-", "")
        plain = plain if plain[:1].isalpha() else f"n{plain}"
        unique, count = plain, 2
        while unique.lower() in self._given:
            unique, count = f"{plain}x{count}", count + 1
        self._given.add(unique.lower())
        if unique != name:
            self._notes.add("the name", name, "written without its hyphens, since GTS's ids are letters and digits")
        return unique


def _machine_lines(
    machine: NetworkMachine, name: str, own: Iterable[int | None], notes: Notes, lost: Notes
) -> list[str]:
    words = [f"id={_quoted(name)}"]
    if machine.location is not None:
        words.append(f"location={_quoted(machine.location)}")
    if machine.cpus is not None and not float(machine.cpus).is_integer():
        lost.add("a share of a processor", name, "GTS's flavours have whole ones")
    elif machine.cpus is not None and machine.memory_mb is not None and not machine.is_switch:
        if machine.memory_mb % 1024 == 0 and 0 < machine.memory_mb // 1024 < 1000:
            words.append(f'flavorId="c{machine.cpus:g}r{machine.memory_mb // 1024}h10"')
        elif (machine.cpus, machine.memory_mb) != (1, 512):
            notes.add("memory", name, "GTS's flavours have whole GB")
    if machine.controller is not None:
        address, _, port = machine.controller.partition(":")
        if _is_address(address):
            words += [f"controllerIPv4={_quoted(address)}"]
        elif address != "builtin":
            lost.add(f"controller: {machine.controller}", name, "GTS names a controller by its address")
        words.append(f"controllerPort={_quoted(port or '6653')}")
    ports_of = "".join(f' port {{ id="p{count}" }}' for count in own)
    return [f"  {'ofx' if machine.is_switch else 'host'} {{ {' '.join(words)}{ports_of} }}"]


def _link_words(link: NetworkLink, name: str, lost: Notes) -> str:
    words = ""
    if link.rate_mbit is not None:
        if link.rate_mbit[0] != link.rate_mbit[1]:
            lost.add("two rates", name, "the lower of them is written; a GTS link has one")
        words += f' capacity="{number(min(link.rate_mbit) * 1000)}kbit"'
    if link.delay_ms is not None:
        if link.delay_ms[0] != link.delay_ms[1]:
            lost.add("two delays", name, "half of both is written; a GTS link has one")
        words += f' delay="{number(sum(link.delay_ms) / 2)}ms"'
    of_one_number = {"mtu": link.mtu, "subnet": link.subnet, "interfaces": link.interfaces or None}
    ways = {what: getattr(link, key) for key, (what, _) in WAYS.items() if what not in ("rate", "delay")}
    for what, value in (*ways.items(), *of_one_number.items()):
        if value is not None:
            lost.add(what, name, "GTS has no word for it")
    return words


def _word(name: str) -> str:
    return _quoted(name) if name in gts_syntax.reserved_words() else name


def _quoted(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n").replace("\t", "\\t")
    )
    return f'"{escaped}"'

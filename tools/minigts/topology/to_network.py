"""A plan as a network that other formats can express, with notes on what they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any, TypeVar

from minigts.formats.network import WAYS, Network, NetworkLink, NetworkMachine, Notes, Ways
from minigts.language.interface_names import end_names
from minigts.topology.end_setting import LinkOfPlan
from minigts.topology.facts.hosts.cpus import DEFAULT_CPUS
from minigts.topology.facts.hosts.memory import DEFAULT_MEMORY_MB
from minigts.topology.facts.links.queue import default_bytes
from minigts.topology.host_setting import Elsewhere
from minigts.topology.host_settings import HOST_SETTINGS
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.plan import elements
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import DEFAULT_MTU
from minigts.topology.read.links import END_SETTINGS
from minigts.topology.read.model import LAB_SETTINGS
from minigts.topology.routes import segments
from minigts.topology.routes.addresses import BUILTIN_ADDRESS, DEFAULT_SUBNETS

T = TypeVar("T")
_FROM_SITES = ("measured", "distance", "same site", "no site")


def network_of(plan: Plan) -> Network:
    """The declared hosts, switches and links. A setting that is the default is left open.

    What no other format can express is under `lost` where it affects delay, rate, loss, addresses or connections, and
    otherwise under `notes`.
    """
    notes, lost = Notes(), Notes()
    for setting in LAB_SETTINGS.values():
        _say(setting.elsewhere, plan, plan.name, notes, lost)
    for name in _with_other_addresses(plan):
        lost.add(
            "addresses", name, "its hosts would have the first addresses of its network, in the order of the links"
        )
    for host in plan.hosts:
        for of_host in HOST_SETTINGS.values():
            _say(of_host.elsewhere, host, host.name, notes, lost)
    for link in plan.links:
        _say_of_link(plan, link, lost)
    interfaces = _interfaces(plan)
    return Network(
        name=plan.name,
        machines=tuple(_machine(plan, each) for each in plan.machines),
        links=tuple(_link(plan, each, interfaces[each.name]) for each in plan.links),
        description=plan.description,
        routing=plan.routing,
        sites=any(link.delay_from is not None for link in plan.links),
        notes=(*plan.notes, *notes.lines()),
        lost=lost.lines(),
    )


def _with_other_addresses(plan: Plan) -> Iterator[str]:
    """The links of segments whose hosts have other addresses than the first ones in the order of the links."""
    of_hosts: dict[str, list[tuple[str, str]]] = {}
    hosts = {host.name: host for host in plan.hosts}
    for link in plan.links:
        for end in (hosts[name] for name in link.ends if name in hosts):
            own = next(port for port in end.ports if port.link == link.name)
            of_hosts.setdefault(link.subnet, []).append((link.name, own.address))
    for subnet, members in of_hosts.items():
        first = IPv4Network(subnet)[0]
        for number, (name, address) in enumerate(members, 1):
            if address != str(first + number):
                yield name


def _say_of_link(plan: Plan, link: elements.Link, lost: Notes) -> None:
    ways = plan.directions(link)
    # A plan has a queue wherever it has a rate; only a queue of another size than the derived one is lost.
    sized = {"queue_bytes": [default_bytes(way.rate_mbit, link.rtt_ms) for way in ways]}
    for each in LINK_SETTINGS:
        has = [getattr(way, each.field) for way in ways]
        if each.field not in WAYS and has != sized.get(each.field, [each.default, each.default]):
            lost.add(each.word, link.name, "no other format has it")
    for of_ends in END_SETTINGS.values():
        _say(of_ends.elsewhere, LinkOfPlan(plan, link), link.name, lost, lost)


def _say(elsewhere: Elsewhere[T] | None, of: T, name: str, notes: Notes, lost: Notes) -> None:
    if elsewhere is not None and elsewhere.has(of):
        what = elsewhere.what if elsewhere.words is None else elsewhere.words(of)
        (lost if elsewhere.lost else notes).add(what, name, elsewhere.why)


def _machine(plan: Plan, machine: elements.Host | elements.Switch) -> NetworkMachine:
    controller = machine.controller if isinstance(machine, elements.Switch) else None
    default = (machine.cpus, machine.memory_mb) == (DEFAULT_CPUS, DEFAULT_MEMORY_MB)
    return NetworkMachine(
        name=machine.name,
        is_switch=isinstance(machine, elements.Switch),
        location=machine.location,
        cpus=None if default else machine.cpus,
        memory_mb=None if default else machine.memory_mb,
        controller=None if controller is None else _controller(plan, controller),
    )


def _controller(plan: Plan, written: str) -> str:
    address, _, port = written.partition(":")
    if address == BUILTIN_ADDRESS:
        return segments.BUILTIN
    named = next((host.name for host in plan.hosts for end in host.on_segments if end.address == address), address)
    return f"{named}:{port}"


def _interfaces(plan: Plan) -> dict[str, tuple[tuple[str, str], ...]]:
    """By link, the names of its ends' interfaces: those of the file that stand beside a port's, and all ports' of
    machines on which they do not follow from the order of the links."""
    ports = {(port.link, machine.name): port for machine in plan.machines for port in machine.ports}
    plain = [NetworkLink(link.ends) for link in plan.links]
    by_order = {
        (link.name, end): name
        for link, names in zip(plan.links, end_names(plain), strict=True)
        for end, name in zip(link.ends, names, strict=True)
    }
    others = {end for (link, end), port in ports.items() if port.name != by_order[link, end]}
    return {
        link.name: tuple(
            (end, port.altname or port.name)
            for end in link.ends
            if (port := ports[link.name, end]).altname is not None or end in others
        )
        for link in plan.links
    }


def _link(plan: Plan, link: elements.Link, interfaces: tuple[tuple[str, str], ...]) -> NetworkLink:
    to, back = plan.directions(link)
    mtu = plan.mtu_of(link)
    said: dict[str, Any] = {field: (getattr(to, field), getattr(back, field)) for field in WAYS}
    of_sites = ("delay_ms",) if link.delay_from in _FROM_SITES else ()
    return NetworkLink(
        ends=link.ends,
        name=link.name,
        mtu=None if mtu == DEFAULT_MTU else mtu,
        **{field: ways for field, ways in said.items() if field not in of_sites and _says_something(field, ways)},
        subnet=_subnet(plan, link),
        interfaces=interfaces,
    )


def _subnet(plan: Plan, link: elements.Link) -> str | None:
    """The link's subnet where it is outside of the default block; else None."""
    own = IPv4Network(link.subnet)
    return None if own.subnet_of(IPv4Network(DEFAULT_SUBNETS)) or link.vlan or link.vlans else link.subnet


def _says_something(field: str, ways: Ways) -> bool:
    """Whether a field is not the default. A delay of 0 counts, too: `delays: sites` would give another."""
    return None not in ways and (field == "delay_ms" or any(ways))

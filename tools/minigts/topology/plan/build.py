"""A checked topology to its plan: names, addresses, routes, shaping and predictions. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import chain, count
from typing import Any, TypeAlias

from minigts.language import interface_names
from minigts.topology import containers, host_settings
from minigts.topology.facts.hosts.cpus import DEFAULT_CPUS
from minigts.topology.facts.links import queue
from minigts.topology.frames import ETHERNET_HEADER_BYTES, Family
from minigts.topology.kernel_names import STANDARD
from minigts.topology.link_settings import Shaping
from minigts.topology.plan import chance
from minigts.topology.plan.directions import derive_shaping, link_figures
from minigts.topology.plan.elements import (
    Host,
    HostPort,
    Link,
    OnVlan,
    Port,
    SpanningTree,
    Switch,
    Tagged,
    Vlan,
)
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft, DraftHost, DraftLink
from minigts.topology.read.model import Topology, planned_fields
from minigts.topology.routes import ipv6, segments
from minigts.topology.routes.addresses import BUILTIN_ADDRESS, assign, free_addresses, host_address, mac
from minigts.topology.routes.paths import add_costs
from minigts.topology.routes.segments import Segment, Vlans
from minigts.topology.routes.spanning_tree import path_cost
from minigts.topology.routing_engines import DEFAULT_ENGINE, PROTOCOLS, EngineName
from minigts.topology.time import Time

Ends: TypeAlias = "dict[str, list[tuple[Link, Port]]]"
"""A machine's ends of links, in the order of their numbers, with their links."""
Addresses: TypeAlias = "dict[tuple[int, int | None, str], str]"
"""IPv4 addresses by link index, VLAN and machine."""


def build(topology: Topology, drafted: Draft, time: Time, directory: str) -> Plan:
    """The plan of `topology`, with the hosts, switches and links of `drafted`, which have passed every check. Paths in
    the topology are relative to `directory`."""
    parts = segments.segments_of(drafted)
    subnets = _subnets(topology, drafted.links, parts)
    family = topology.families[0]
    declared = _links(drafted.links, segments.vlans_of_links(drafted), zip(parts, subnets, strict=True), family)
    given = _addresses(parts, subnets, drafted.links)
    ends = _ends(drafted, declared, topology.seed)
    of_lab = topology.kernel
    switches = tuple(
        _switch(drafted, index, ends, given).model_copy(update=_kernel(None, of_lab))
        for index in range(len(drafted.switches))
    )
    hosts = tuple(
        host_of(host, index, _ports(host.name, ends, given), directory, of_lab, topology.routing.engine)
        for index, host in enumerate(drafted.hosts)
    )
    declared = _with_tree_costs(declared, drafted)
    by_protocol = topology.routing.protocol in PROTOCOLS and not any(link.relationship for link in declared)
    links = add_costs(hosts, switches, declared, ecmp=bool(topology.ecmp)) if by_protocol else declared
    return Plan(
        time=time,
        hosts=hosts,
        switches=switches,
        links=links,
        ipv6=None if topology.ipv6 is None else ipv6.lab_addresses(hosts, links, topology.ipv6),
        **planned_fields(topology),
    )


def host_of(
    host: DraftHost,
    index: int,
    ports: tuple[HostPort, ...],
    directory: str,
    kernel: str | None = None,
    engine: EngineName = DEFAULT_ENGINE,
) -> Host:
    """A host of a plan, in a lab of that `kernel` and that routing program."""
    return Host(
        name=host.name,
        index=index,
        address=host_address(index),
        ports=ports,
        containers=containers.plan_containers(host.containers, directory),
        engine=engine if host.spec.routing is None else host.spec.routing.engine,
        **_kernel(host.spec.kernel, kernel),
        **host_settings.planned_fields(host.spec),
    )


def _kernel(own: str | None, of_lab: str | None) -> dict[str, str]:
    """The field of a machine with its kernel: its own, or the lab's; the standard one is not stored."""
    name = own or of_lab or STANDARD
    return {} if name == STANDARD else {"kernel": name}


def _subnets(topology: Topology, links: Sequence[DraftLink], parts: Sequence[Segment]) -> list[IPv4Network]:
    written = [
        next((links[index].subnet for index in part.links if links[index].subnet and not links[index].vlans), None)
        for part in parts
    ]
    explicit = [IPv4Network(subnet) if subnet is not None else None for subnet in written]
    assigned = assign(explicit, IPv4Network(topology.subnets), [len(part.members) for part in parts])
    return [subnet for subnet in assigned if subnet is not None]


def _addresses(parts: Sequence[Segment], subnets: Sequence[IPv4Network], links: Sequence[DraftLink]) -> Addresses:
    """The addresses of each segment: those of the file, and for others the lowest that are free, for its hosts in the
    order of its links, then its switches."""
    given: Addresses = {}
    for part, subnet in zip(parts, subnets, strict=True):
        taken = segments.addresses_written(part, links)
        free = free_addresses(subnet, {*taken.values()})
        for name in part.members:
            if name not in taken:
                taken[name] = next(free)
        given |= {(index, part.vlan, name): taken[name] for index in part.links for name in links[index].ends}
    return given


def _links(
    drafts: Sequence[DraftLink],
    carried: Sequence[Vlans],
    parts: Iterable[tuple[Segment, IPv4Network]],
    family: Family,
) -> tuple[Link, ...]:
    subnets = {(index, part.vlan): str(subnet) for part, subnet in parts for index in part.links}
    return tuple(
        link_of(index, draft, name, {vlan: subnets[index, vlan] for vlan in carried[index]}, family)
        for index, (draft, name) in enumerate(zip(drafts, link_names(drafts), strict=True))
    )


def link_of(index: int, draft: DraftLink, name: str, subnets: Mapping[int | None, str], family: Family) -> Link:
    """A link of a plan, with TCP over `family`."""
    return Link(
        name=name,
        index=index,
        ends=draft.ends,
        subnet=next(iter(subnets.values())),
        vlan=draft.vlan,
        vlans=tuple(
            Vlan(number=number, subnet=subnet)
            for number, subnet in subnets.items()
            if number is not None and draft.vlan is None
        ),
        delay_from=draft.delay_from,
        cost=None if draft.costs is None else draft.costs.to,
        relationship=draft.relationship,
        cost_back=None if draft.costs is None or draft.costs.to == draft.costs.back else draft.costs.back,
        **link_figures(*draft.ways, draft.mtu, family),
    )


def link_names(links: Sequence[DraftLink]) -> list[str]:
    """Each link's name: its own, or its ends with a hyphen and, where that is taken, a number (`a-b`, `a-b-2`)."""
    taken = {link.name for link in links if link.name is not None}
    names = []
    for link in links:
        name = link.name or free_name(link.ends, taken)
        taken.add(name)
        names.append(name)
    return names


def free_name(ends: tuple[str, str], taken: Collection[str]) -> str:
    """The first free name of a link between `ends`: `a-b`, `a-b-2`, …"""
    plain = f"{ends[0]}-{ends[1]}"
    return next(name for name in chain((plain,), (f"{plain}-{number}" for number in count(2))) if name not in taken)


def shaping_of(way: Shaping, rtt_ms: float, mtu: int, seed: int) -> Shaping:
    """One direction of a link, its queue sized for `rtt_ms`, with `seed` where it uses random numbers."""
    size_bytes = queue.planned_bytes(way, way.rate_mbit, rtt_ms, mtu + ETHERNET_HEADER_BYTES)
    declared = way.model_copy(update={"queue_bytes": size_bytes})
    return derive_shaping(declared, seed)


def shapings(draft: DraftLink, name: str, seed: int) -> tuple[Shaping, Shaping]:
    """A link's shaping by receiving end: first the direction to its first end, then that to its second."""
    to, back = (
        shaping_of(way, draft.rtt_ms, draft.mtu, chance.declared_seed(seed, name, number))
        for number, way in ((1, draft.ways.to), (0, draft.ways.back))
    )
    return back, to


def end_of(link: Link, number: int, mtu: int, towards: tuple[Shaping, Shaping], name: str) -> Port:
    """End `number` of a link, 0 or 1. `towards` is the link's shaping by receiving end."""
    return Port(
        name=name,
        mac=mac(link.index, number),
        mtu=mtu,
        link=link.name,
        peer_host=link.ends[1 - number],
        outgoing=towards[1 - number],
        incoming=towards[number],
    )


def _ends(drafted: Draft, links: Sequence[Link], seed: int) -> Ends:
    """The ends of each machine in the order of their numbers."""
    ends: Ends = {machine.name: [] for machine in drafted.machines}
    for draft, link, names in zip(drafted.links, links, interface_names.end_names(drafted.links), strict=True):
        towards = shapings(draft, link.name, seed)
        for number in (0, 1):
            port = end_of(link, number, draft.mtu, towards, names[number])
            beside = [(end, name) for end, name in draft.interfaces if interface_names.number_of(name) is None]
            of_file = (("mac", draft.macs), ("altname", beside))
            written = {key: text for key, each in of_file for end, text in each if end == link.ends[number]}
            ends[link.ends[number]].append((link, port.model_copy(update=written) if written else port))
    return {machine: sorted(own, key=lambda end: end[1].number) for machine, own in ends.items()}


def _ports(
    host: str,
    ends: Ends,
    given: Addresses,
) -> tuple[HostPort, ...]:
    def on(link: Link, vlan: int | None, subnet: str, peer: str) -> dict[str, Any]:
        own, far = given[link.index, vlan, host], given[link.index, vlan, peer]
        return {"address": own, "prefix": IPv4Network(subnet).prefixlen, "peer_address": far}

    return tuple(
        HostPort(
            **dict(end),
            **on(link, *link.segments[0], end.peer_host),
            tagged=tuple(
                Tagged(vlan=vlan.number, **on(link, vlan.number, vlan.subnet, end.peer_host)) for vlan in link.vlans
            ),
        )
        for link, end in ends[host]
    )


def _switch(
    drafted: Draft,
    index: int,
    ends: Ends,
    given: Addresses,
) -> Switch:
    switch = drafted.switches[index]
    own = ends[switch.name]
    on = {
        vlan: (given[link.index, vlan, switch.name], IPv4Network(subnet).prefixlen)
        for link, _ in own
        for vlan, subnet in link.segments
    }
    vlans = sorted(vlan for vlan in on if vlan is not None)
    address, prefix = on[vlans[0] if vlans else None]
    return Switch(
        name=switch.name,
        index=index,
        location=switch.location,
        cpus=DEFAULT_CPUS,
        memory_mb=switch.memory_mb,
        ports=tuple(end for _, end in own),
        address=address,
        prefix=prefix,
        vlans=tuple(OnVlan(vlan=vlan, address=on[vlan][0], prefix=on[vlan][1]) for vlan in vlans),
        controller=_controller(switch.controller, f"{address}/{prefix}", given),
        spanning_tree=None
        if switch.spanning_tree is None
        else SpanningTree(protocol=switch.spanning_tree, priority=switch.priority),
    )


def _with_tree_costs(links: Sequence[Link], drafted: Draft) -> tuple[Link, ...]:
    """The links with what their ports cost in the spanning tree, where both ends have one."""
    protocols = {each.name: each.spanning_tree for each in drafted.switches if each.spanning_tree is not None}

    def cost(draft: DraftLink) -> int | None:
        ends = [protocols[end] for end in draft.ends if end in protocols]
        return path_cost(ends[0], segments.slower_mbit(*draft.ways)) if len(ends) > 1 else None

    costs = [cost(draft) for draft in drafted.links]
    return tuple(
        link if its is None else link.model_copy(update={"tree_cost": its})
        for link, its in zip(links, costs, strict=True)
    )


def _controller(written: str | None, of_switch: str, given: Addresses) -> str | None:
    """Where the controller listens: on the switch itself, at an address, or on a host of the switch's segment."""
    if written is None:
        return None
    name, port = segments.host_and_port(written)
    segment = IPv4Interface(of_switch).network
    on_segment = {host: address for (_, _, host), address in given.items() if IPv4Address(address) in segment}
    address = {segments.BUILTIN: BUILTIN_ADDRESS, **on_segment}.get(name, name)
    return f"{address}:{port}"

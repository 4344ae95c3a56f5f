"""A checked topology to its plan: names, addresses, routes, shaping and predictions. Pure and deterministic."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any, TypeAlias

from minigts.topology import switching
from minigts.topology.addressing import assign, host_address, mac
from minigts.topology.containers import planned
from minigts.topology.draft import DEFAULT_CPUS, Draft, DraftDirection, DraftLink
from minigts.topology.model import ProcessorSpec, ToleranceSpec, Topology
from minigts.topology.plan import (
    Direction,
    End,
    Group,
    Host,
    Link,
    OnVlan,
    Path,
    Plan,
    Port,
    Processor,
    Route,
    Shaping,
    Switch,
    Tagged,
    Tolerances,
    Vlan,
    ipv6_beside,
)
from minigts.topology.protocol_costs import protocol_costs
from minigts.topology.queues import queue_bytes
from minigts.topology.routing import Edge, ShortestPath, neighbours, ways
from minigts.topology.segments import Segment, Vlans
from minigts.topology.time import Time
from minigts.topology.ways import Row, completed, direction, spoilt_percent, turned

Ends: TypeAlias = "dict[str, list[tuple[Link, End]]]"
"""A machine's ends of links, in order, with their links."""
Addresses: TypeAlias = "dict[tuple[int, int | None, str], str]"
"""By link, VLAN and machine."""


@dataclass(frozen=True)
class _Network:
    """The links of a lab with what was declared of them, and the ways over them; by index, hosts before switches.

    A switch is as many nodes as it has VLANs, since no frame goes from one to another."""

    links: tuple[Link, ...]
    directions: tuple[tuple[Direction, Direction], ...]
    """Of each link: from its first end to its second, and back."""
    drafts: tuple[DraftLink, ...]
    edges: tuple[Edge, ...]
    """One for each VLAN that a link carries, and for each link without any."""
    carriers: tuple[tuple[int, int | None], ...]
    """Of each edge its link, and its VLAN."""
    segments: tuple[tuple[Segment, str], ...]
    """With their subnets."""
    addresses: Addresses
    ways: list[dict[int, ShortestPath]]
    ports: Mapping[str, tuple[Port, ...]]
    switches: tuple[Switch, ...]
    routed: bool


def build(topology: Topology, drafted: Draft, time: Time, directory: str) -> Plan:
    """The plan of `topology`, whose hosts, switches and links are `drafted`; all have passed every check. What it names
    of this machine's files lies in `directory`."""
    network = _network(topology, drafted)
    names = [host.name for host in drafted.hosts]
    hosts = tuple(
        Host(
            name=host.name,
            index=index,
            location=host.location,
            cpus=_cpus(host.cpus),
            memory_mb=host.memory_mb,
            processor=_processor(host.processor),
            address=host_address(index),
            ports=network.ports[host.name],
            routes=_routes(network, names, index) if network.routed else (),
            containers=planned(host.containers, directory),
            gateway=host.gateway,
        )
        for index, host in enumerate(drafted.hosts)
    )
    return Plan(
        name=topology.name,
        description=(topology.description or "").strip(),
        routing=topology.routing,
        time=time,
        overlay=topology.overlay,
        groups=tuple(Group(name=name, hosts=hosts) for name, hosts in (topology.groups or {}).items()),
        hosts=hosts,
        switches=network.switches,
        links=network.links,
        paths=_paths(network, names),
        expect=tuple(expectation.model_dump(exclude_none=True) for expectation in topology.expect or ()),
        tolerances=_tolerances(topology.tolerances),
        ipv6=None if topology.ipv6 is None else ipv6_beside(hosts, network.links, topology.ipv6),
    )


def _cpus(written: float) -> int | float:
    """Whole processors as a whole number, which is how a plan says it."""
    return written if written < 1 else int(written)


def _processor(written: ProcessorSpec | None) -> Processor | None:
    """One that takes nothing is none."""
    if written is None or not (written.frame or written.byte or written.call):
        return None
    return Processor(frame_ns=written.frame, byte_ns=written.byte, call_ns=written.call)


def _tolerances(written: ToleranceSpec | None) -> Tolerances:
    if written is None:
        return Tolerances()
    rtt_ms, rtt_percent = written.rtt
    return Tolerances(rtt_ms=rtt_ms, rtt_percent=rtt_percent, rate_percent=written.rate, loss_points=written.loss)


def _network(topology: Topology, drafted: Draft) -> _Network:
    parts = switching.of(drafted)
    subnets = _subnets(topology, drafted.links, parts)
    carried = switching.carried(drafted)
    links = _links(drafted.links, carried, zip(parts, subnets, strict=True))
    nodes = _nodes(drafted, parts)
    carriers = tuple((link.index, vlan) for link in links for vlan in carried[link.index])
    edges = tuple(
        Edge((nodes[links[index].ends[0], vlan], nodes[links[index].ends[1], vlan]), links[index].rtt_ms)
        for index, vlan in carriers
    )
    size = len({*nodes.values()})
    if topology.routing in ("ospf", "bgp"):
        announced = protocol_costs(size, edges, [link.name for link in links])
        links = tuple(link.model_copy(update={"cost": cost}) for link, cost in zip(links, announced, strict=True))
        edges = tuple(Edge(edge.ends, float(cost)) for edge, cost in zip(edges, announced, strict=True))
    given = _addresses(parts, subnets, drafted.links)
    ends = _ends(drafted, links, topology.seed)
    return _Network(
        links,
        tuple(link.ways for link in links),
        drafted.links,
        edges,
        carriers,
        tuple((part, str(subnet)) for part, subnet in zip(parts, subnets, strict=True)),
        given,
        ways(size, edges),
        {host.name: _ports(host.name, ends, given) for host in drafted.hosts},
        tuple(_switch(drafted, index, ends, given) for index in range(len(drafted.switches))),
        topology.routing != "neighbours",
    )


def _nodes(drafted: Draft, parts: Sequence[Segment]) -> dict[tuple[str, int | None], int]:
    """By machine and VLAN its number among the nodes of a network; a host has the same in all."""
    vlans = sorted({None, *(part.vlan for part in parts)}, key=lambda vlan: vlan or 0)
    nodes = {(host.name, vlan): index for index, host in enumerate(drafted.hosts) for vlan in vlans}
    bridges = [
        (switch.name, vlan)
        for switch in drafted.switches
        for vlan in vlans
        if any(part.vlan == vlan and switch.name in part.switches for part in parts)
    ]
    return nodes | {bridge: len(drafted.hosts) + number for number, bridge in enumerate(bridges)}


def _subnets(topology: Topology, links: Sequence[DraftLink], parts: Sequence[Segment]) -> list[IPv4Network]:
    written = [
        next((links[index].subnet for index in part.links if links[index].subnet and not links[index].vlans), None)
        for part in parts
    ]
    explicit = [IPv4Network(subnet) if subnet is not None else None for subnet in written]
    assigned = assign(explicit, IPv4Network(topology.subnets))
    return [subnet for subnet in assigned if subnet is not None]


def _addresses(parts: Sequence[Segment], subnets: Sequence[IPv4Network], links: Sequence[DraftLink]) -> Addresses:
    """Who has which address: the hosts of a segment in the order of its links, then its switches."""
    given: Addresses = {}
    for part, subnet in zip(parts, subnets, strict=True):
        taken = {name: str(subnet.network_address + 1 + number) for number, name in enumerate(part.members)}
        given |= {(index, part.vlan, name): taken[name] for index in part.links for name in links[index].ends}
    return given


def _links(
    drafts: Sequence[DraftLink], carried: Sequence[Vlans], parts: Iterable[tuple[Segment, IPv4Network]]
) -> tuple[Link, ...]:
    subnets = {(index, part.vlan): str(subnet) for part, subnet in parts for index in part.links}
    return tuple(
        _link(index, draft, name, {vlan: subnets[index, vlan] for vlan in carried[index]})
        for index, (draft, name) in enumerate(zip(drafts, link_names(drafts), strict=True))
    )


def _link(index: int, draft: DraftLink, name: str, subnets: Mapping[int | None, str]) -> Link:
    to, back = draft.ways
    there = direction(
        to.delay_ms, spoilt_percent(to.loss_percent, to.corrupt_percent), (to.rate_mbit, back.rate_mbit), draft.mtu
    )
    again = direction(
        back.delay_ms,
        spoilt_percent(back.loss_percent, back.corrupt_percent),
        (back.rate_mbit, to.rate_mbit),
        draft.mtu,
    )
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
        rtt_ms=draft.rtt_ms,
        rate_mbit=there.rate_mbit,
        loss_percent=there.loss_percent,
        tcp_ceiling_mbit=there.tcp_ceiling_mbit,
        back=None if again == there else again,
        delay_from=draft.delay_from,
    )


def link_names(links: Sequence[DraftLink]) -> list[str]:
    """Each link's name: its own, or its ends with a hyphen and, where that is taken, a number (`a-b`, `a-b-2`)."""
    taken = {link.name for link in links if link.name is not None}
    names = []
    for link in links:
        plain = f"{link.ends[0]}-{link.ends[1]}"
        name, number = link.name or plain, 2
        while link.name is None and name in taken:
            name, number = f"{plain}-{number}", number + 1
        taken.add(name)
        names.append(name)
    return names


def _shaping(way: DraftDirection, rtt_ms: float, name: str) -> Shaping:
    """One direction of a link of that round trip; its name gives it random numbers of its own."""
    declared = Shaping(**{**asdict(way), "queue_bytes": queue_bytes(way.rate_mbit, rtt_ms, way.queue_bytes)})
    return completed(declared, zlib.crc32(name.encode()))


def _ends(drafted: Draft, links: Sequence[Link], seed: int) -> Ends:
    """The ends of each machine in order of the links: eth1, eth2, …"""
    ends: Ends = {machine.name: [] for machine in drafted.machines}
    for draft, link in zip(drafted.links, links, strict=True):
        # By the end that a direction leads to: to the first one leads the way back.
        leading = (draft.ways.back, draft.ways.to)
        towards = [_shaping(way, draft.rtt_ms, f"{seed}/{link.name}/{number}") for number, way in enumerate(leading)]
        for number in (0, 1):
            own = ends[link.ends[number]]
            end = End(
                name=f"eth{len(own) + 1}",
                mac=mac(link.index, number),
                mtu=draft.mtu,
                link=link.name,
                peer_host=link.ends[1 - number],
                outgoing=towards[1 - number],
                incoming=towards[number],
            )
            own.append((link, end))
    return ends


def _ports(
    host: str,
    ends: Ends,
    given: Addresses,
) -> tuple[Port, ...]:
    def on(link: Link, vlan: int | None, subnet: str, peer: str) -> dict[str, Any]:
        own, far = given[link.index, vlan, host], given[link.index, vlan, peer]
        return {"address": own, "prefix": IPv4Network(subnet).prefixlen, "peer_address": far}

    return tuple(
        Port(
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
    )


def _controller(written: str | None, of_switch: str, given: Addresses) -> str | None:
    """Where the controller listens: on the switch itself, at an address, or on a host of the switch's segment."""
    if written is None:
        return None
    name, port = switching.split(written)
    segment = IPv4Interface(of_switch).network
    on_segment = {host: address for (_, _, host), address in given.items() if IPv4Address(address) in segment}
    address = {switching.BUILTIN: switching.BUILTIN_ADDRESS, **on_segment}.get(name, name)
    return f"{address}:{port}"


def _routes(network: _Network, names: Sequence[str], index: int) -> tuple[Route, ...]:
    """Routes of one host: to every other host's own address, then to every segment that it has no port on."""
    own = {target: way for target, way in network.ways[index].items() if target < len(names)}
    indices = {name: number for number, name in enumerate(names)}

    def route(to: str, way: ShortestPath) -> Route:
        return Route(to=to, via=_gateway(network, names, way), source=host_address(index))

    hosts = [route(f"{host_address(target)}/32", way) for target, way in own.items()]
    segments = []
    for part, subnet in network.segments:
        leading = [indices[name] for name in part.hosts if indices[name] in own]
        if leading and names[index] not in part.hosts:
            nearest = min((own[target] for target in leading), key=lambda way: way.cost)
            segments.append(route(subnet, nearest))
    return (*hosts, *segments)


def _gateway(network: _Network, names: Sequence[str], way: ShortestPath) -> str:
    """The address of the first host on the way, on the segment where the way begins."""
    position = 1
    while way.nodes[position] >= len(names):  # a switch
        position += 1
    return network.addresses[*network.carriers[way.links[position - 1]], names[way.nodes[position]]]


def _paths(network: _Network, names: Sequence[str]) -> tuple[Path, ...]:
    # Without routing, neighbours use the segment they share even where a way round would be shorter.
    direct = {} if network.routed else neighbours(len(names), network.edges)
    paths = []
    for source in range(len(names)):
        rows = _rows(network, source)
        for target in network.ways[source]:
            if source < target < len(names):
                near = direct.get((source, target))
                row, links = rows[target] if near is None else _row(network, near)
                reachable = network.routed or near is not None
                paths.append(_path((names[source], names[target]), row, links, reachable=reachable))
    return tuple(paths)


def _rows(network: _Network, source: int) -> dict[int, tuple[Row, tuple[str, ...]]]:
    """What the way from a host to each other machine comes to, and the names of its links: a link more than to the one
    before."""
    rows: dict[int, tuple[Row, tuple[str, ...]]] = {source: (Row(), ())}
    for target, way in sorted(network.ways[source].items(), key=lambda each: len(each[1].links)):
        rows[target] = _further(network, *rows[way.nodes[-2]], way.nodes[-2], way.links[-1])
    return rows


def _row(network: _Network, way: ShortestPath) -> tuple[Row, tuple[str, ...]]:
    row: tuple[Row, tuple[str, ...]] = (Row(), ())
    for here, index in zip(way.nodes, way.links, strict=False):
        row = _further(network, *row, here, index)
    return row


def _further(network: _Network, row: Row, names: tuple[str, ...], here: int, index: int) -> tuple[Row, tuple[str, ...]]:
    """A row that ends at node `here`, with one edge more."""
    link = network.links[network.carriers[index][0]]
    ways_ = network.directions[link.index]
    lying = ways_ if network.edges[index].ends[0] == here else turned(ways_)
    return row.then(lying, link.rtt_ms, network.drafts[link.index].mtu), (*names, link.name)


def _path(ends: tuple[str, str], row: Row, links: tuple[str, ...], *, reachable: bool) -> Path:
    there = row.there
    return Path(
        source=ends[0],
        target=ends[1],
        links=links,
        reachable=reachable,
        rtt_ms=round(row.rtt_ms, 6),
        rate_mbit=there.rate_mbit,
        tcp_ceiling_mbit=there.tcp_ceiling_mbit,
        loss_percent=there.loss_percent,
        back=row.back,
    )

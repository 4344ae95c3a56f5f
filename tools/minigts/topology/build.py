"""A checked topology to its plan: names, addresses, routes, shaping and predictions. Pure and deterministic."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from minigts.topology.addressing import assign, host_address, mac
from minigts.topology.draft import Draft, DraftLink
from minigts.topology.model import ToleranceSpec, Topology
from minigts.topology.plan import Host, Link, Path, Plan, Port, Route, Shaping, Tolerances
from minigts.topology.routing import Edge, Way, neighbours, preference, ways

TCP_AND_IP_HEADERS = 52
"""IPv4 20, TCP 20, timestamps 12 (RFC 7323)."""
ETHERNET_HEADER = 14
"""What tbf counts of a frame beside the IP packet; the check sequence and the preamble are not there yet."""

_SPARE_QUEUE_MS = 20.0
_SMALLEST_QUEUE = 64_000
_SMALLEST_FRAME = 64
_UNLIMITED_MBIT = 1000.0
_FEWEST_PACKETS, _MOST_PACKETS = 1000, 1_000_000


@dataclass(frozen=True)
class _Network:
    """The segments of a lab with what was declared of them, and the ways over them; all by index."""

    links: tuple[Link, ...]
    drafts: tuple[DraftLink, ...]
    edges: tuple[Edge, ...]
    ways: list[dict[int, Way]]
    ports: list[list[Port]]
    routed: bool


def build(topology: Topology, drafted: Draft) -> Plan:
    """The plan of `topology`, whose hosts and links are `drafted`; both have passed every check."""
    network = _network(topology, drafted)
    hosts = tuple(
        Host(
            name=host.name,
            index=index,
            location=host.location,
            cpus=host.cpus,
            memory_mb=host.memory_mb,
            address=host_address(index),
            ports=tuple(network.ports[index]),
            routes=_routes(network, index) if network.routed else (),
        )
        for index, host in enumerate(drafted.hosts)
    )
    return Plan(
        name=topology.name,
        description=(topology.description or "").strip(),
        routing=topology.routing,
        overlay=topology.overlay,
        hosts=hosts,
        links=network.links,
        paths=_paths(network, [host.name for host in drafted.hosts]),
        expect=tuple(expectation.model_dump(exclude_none=True) for expectation in topology.expect or ()),
        tolerances=_tolerances(topology.tolerances),
    )


def _tolerances(written: ToleranceSpec | None) -> Tolerances:
    if written is None:
        return Tolerances()
    rtt_ms, rtt_percent = written.rtt
    return Tolerances(rtt_ms=rtt_ms, rtt_percent=rtt_percent, rate_percent=written.rate, loss_points=written.loss)


def _network(topology: Topology, drafted: Draft) -> _Network:
    indices = {host.name: index for index, host in enumerate(drafted.hosts)}
    links = _links(drafted.links, _subnets(topology, drafted.links))
    edges = tuple(Edge((indices[link.ends[0]], indices[link.ends[1]]), link.rtt_ms) for link in links)
    return _Network(
        links,
        drafted.links,
        edges,
        ways(len(drafted.hosts), edges),
        _ports(drafted, links, topology.seed),
        topology.routing == "routed",
    )


def _subnets(topology: Topology, links: Sequence[DraftLink]) -> list[IPv4Network]:
    explicit = [IPv4Network(link.subnet) if link.subnet is not None else None for link in links]
    assigned = assign(explicit, IPv4Network(topology.subnets))
    return [subnet for subnet in assigned if subnet is not None]


def _links(drafts: Sequence[DraftLink], subnets: Sequence[IPv4Network]) -> tuple[Link, ...]:
    return tuple(
        Link(
            name=name,
            index=index,
            ends=draft.ends,
            subnet=str(subnet),
            rtt_ms=round(2 * draft.delay_ms, 6),
            rate_mbit=draft.rate_mbit,
            loss_percent=draft.loss_percent,
        )
        for index, (draft, name, subnet) in enumerate(zip(drafts, _names(drafts), subnets, strict=True))
    )


def _names(links: Sequence[DraftLink]) -> list[str]:
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


def _shaping(link: DraftLink, direction: str) -> Shaping:
    """One direction of a link; its name gives it random numbers of its own."""
    return Shaping(
        delay_ms=link.delay_ms,
        jitter_ms=link.jitter_ms,
        loss_percent=link.loss_percent,
        rate_mbit=link.rate_mbit,
        queue_bytes=queue_bytes(link.rate_mbit, 2 * link.delay_ms, link.queue_bytes),
        delay_packets=delay_packets(link.rate_mbit, link.delay_ms, link.jitter_ms),
        seed=zlib.crc32(direction.encode()) if link.loss_percent or link.jitter_ms else None,
    )


def queue_bytes(rate_mbit: float | None, rtt_ms: float, declared: int | None = None) -> int | None:
    """Room in front of a rate, in bytes: as declared, else rate x (RTT of the link + 20 ms), at least 64 kB.

    One bandwidth-delay product keeps a link busy under TCP (Villamizar and Song, 1994). The 20 ms stand for the
    rest of the way, and for scheduling, where the link itself adds hardly any delay.
    """
    if rate_mbit is None:
        return None
    sized = math.ceil(rate_mbit * 1000 / 8 * (rtt_ms + _SPARE_QUEUE_MS))
    return declared if declared is not None else max(_SMALLEST_QUEUE, sized)


def delay_packets(rate_mbit: float | None, delay_ms: float, jitter_ms: float) -> int:
    """How many packets the delay must hold so that it never drops one itself.

    Twice what arrives within delay + 4 x jitter as the smallest frames, 64 bytes each. A link without a rate
    counts as 1 Gbit/s: in small frames no emulated host sends as much.
    """
    rate = rate_mbit if rate_mbit is not None else _UNLIMITED_MBIT
    held = rate * 1000 / 8 * (delay_ms + 4 * jitter_ms) / _SMALLEST_FRAME
    return min(_MOST_PACKETS, max(_FEWEST_PACKETS, math.ceil(2 * held)))


def _ports(drafted: Draft, links: Sequence[Link], seed: int) -> list[list[Port]]:
    """The ports of each host in order of the links: eth1, eth2, …"""
    ports: dict[str, list[Port]] = {host.name: [] for host in drafted.hosts}
    for draft, link in zip(drafted.links, links, strict=True):
        network = IPv4Network(link.subnet)
        # The same in both directions, but for what chance does: the language has no other links.
        towards = [_shaping(draft, f"{seed}/{link.name}/{end}") for end in (0, 1)]
        for end in (0, 1):
            own = ports[link.ends[end]]
            own.append(
                Port(
                    name=f"eth{len(own) + 1}",
                    mac=mac(link.index, end),
                    address=str(network.network_address + 1 + end),
                    prefix=network.prefixlen,
                    mtu=draft.mtu,
                    link=link.name,
                    peer_host=link.ends[1 - end],
                    peer_address=str(network.network_address + 2 - end),
                    outgoing=towards[1 - end],
                    incoming=towards[end],
                )
            )
    return list(ports.values())


def _routes(network: _Network, index: int) -> tuple[Route, ...]:
    """Routes of one host: to every other host's own address, then to every segment that it has no port on."""
    gateways = {port.link: port.peer_address for port in network.ports[index]}
    own = network.ways[index]

    def route(to: str, way: Way) -> Route:
        return Route(to=to, via=gateways[network.links[way.links[0]].name], source=host_address(index))

    hosts = [route(f"{host_address(target)}/32", way) for target, way in own.items()]
    segments = [
        route(link.subnet, min((own[end] for end in edge.ends), key=lambda way: preference(way, network.edges)))
        for link, edge in zip(network.links, network.edges, strict=True)
        if index not in edge.ends
    ]
    return (*hosts, *segments)


def _paths(network: _Network, names: Sequence[str]) -> tuple[Path, ...]:
    # Without routing, neighbours use the segment they share even where a way round would be shorter.
    direct = {} if network.routed else neighbours(network.edges)
    return tuple(
        _path(
            network,
            (names[source], names[target]),
            direct.get((source, target), way),
            reachable=network.routed or (source, target) in direct,
        )
        for source in range(len(names))
        for target, way in network.ways[source].items()
        if source < target
    )


def _path(network: _Network, ends: tuple[str, str], way: Way, *, reachable: bool) -> Path:
    links = [network.links[index] for index in way.links]
    rate = min((link.rate_mbit for link in links if link.rate_mbit is not None), default=None)
    mtu = min(network.drafts[index].mtu for index in way.links)
    share = (mtu - TCP_AND_IP_HEADERS) / (mtu + ETHERNET_HEADER)
    arrives = math.prod(1 - link.loss_percent / 100 for link in links)
    return Path(
        source=ends[0],
        target=ends[1],
        links=tuple(link.name for link in links),
        reachable=reachable,
        rtt_ms=round(sum(link.rtt_ms for link in links), 6),
        rate_mbit=rate,
        tcp_ceiling_mbit=None if rate is None else round(rate * share, 6),
        loss_percent=round(100 * (1 - arrives), 9),
    )

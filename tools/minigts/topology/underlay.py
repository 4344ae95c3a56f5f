"""Routes and paths of a lab, which follow from its hosts, switches and links. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minigts.topology.plan import Direction, Host, Link, Path, Route, Switch
from minigts.topology.protocol_costs import protocol_costs
from minigts.topology.routing import Edge, ShortestPath, neighbours, ways
from minigts.topology.ways import Row, turned


@dataclass(frozen=True)
class _Edge:
    """What an edge of the network is of: a link, and of a trunk one of its VLANs."""

    link: Link
    subnet: str
    nodes: tuple[int, int]
    directions: tuple[Direction, Direction]
    """From the first node to the second, and back."""
    mtu: int


@dataclass(frozen=True)
class _Network:
    """Nodes are the hosts, then the switches; a switch is as many as it has VLANs, since no frame goes from one to
    another. An edge is a link, or a VLAN of it.
    """

    hosts: tuple[Host, ...]
    edges: tuple[_Edge, ...]
    segments: Mapping[str, tuple[int, ...]]
    """By subnet the hosts on it, in the order of its links."""
    addresses: Mapping[tuple[str, str, str], str]
    """Of hosts, by link, subnet and name."""
    ways: list[dict[int, ShortestPath]]


def underlay(
    hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, is_routed: bool
) -> tuple[dict[str, tuple[Route, ...]], tuple[Path, ...]]:
    """The routes of each host by name, none unless `is_routed`; the paths between all that are connected."""
    network = _network(hosts, switches, links)
    routes = {host.name: _routes(network, index) if is_routed else () for index, host in enumerate(hosts)}
    return routes, _paths(network, is_routed=is_routed)


def with_costs(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> tuple[Link, ...]:
    """The links with what a routing protocol of the hosts takes each to cost."""
    edges = [_as_edge(each) for each in _edges(hosts, switches, links)]
    announced = protocol_costs(len(hosts) + len(switches), edges, [link.name for link in links])
    return tuple(link.model_copy(update={"cost": cost}) for link, cost in zip(links, announced, strict=True))


def _network(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> _Network:
    edges = _edges(hosts, switches, links)
    segments: dict[str, tuple[int, ...]] = {}
    for edge in edges:
        of_hosts = tuple(node for node in edge.nodes if node < len(hosts))
        segments[edge.subnet] = (*segments.get(edge.subnet, ()), *of_hosts)
    addresses = {(port.link, port.subnet, host.name): port.address for host in hosts for port in host.on_segments}
    size = max((node for edge in edges for node in edge.nodes), default=0) + 1
    found = ways(max(size, len(hosts)), [_as_edge(edge) for edge in edges])
    return _Network(tuple(hosts), edges, segments, addresses, found)


def _as_edge(edge: _Edge) -> Edge:
    return Edge(edge.nodes, edge.link.rtt_ms if edge.link.cost is None else float(edge.link.cost))


def _edges(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> tuple[_Edge, ...]:
    indices = {host.name: index for index, host in enumerate(hosts)}
    bridges: list[tuple[str, int | None]] = []
    for switch in switches:
        bridges += [(switch.name, each.vlan) for each in switch.vlans] or [(switch.name, None)]
    numbers = {bridge: number for number, bridge in enumerate(bridges, len(hosts))}
    mtus = {port.link: port.mtu for machine in (*hosts, *switches) for port in machine.ports}

    def node(name: str, vlan: int | None) -> int:
        return indices[name] if name in indices else numbers[name, vlan]

    return tuple(
        _Edge(link, subnet, (node(link.ends[0], vlan), node(link.ends[1], vlan)), link.ways, mtus[link.name])
        for link in links
        for vlan, subnet in link.segments
    )


def _routes(network: _Network, index: int) -> tuple[Route, ...]:
    """Routes of one host: to every other host's own address, then to every segment that it has no port on."""
    own = {target: way for target, way in network.ways[index].items() if target < len(network.hosts)}
    source = network.hosts[index].address

    def route(to: str, way: ShortestPath) -> Route:
        return Route(to=to, via=_gateway(network, way), source=source)

    hosts = [route(f"{network.hosts[target].address}/32", way) for target, way in own.items()]
    segments = []
    for subnet, members in network.segments.items():
        leading = [member for member in members if member in own]
        if leading and index not in members:
            segments.append(route(subnet, min((own[member] for member in leading), key=lambda way: way.cost)))
    return (*hosts, *segments)


def _gateway(network: _Network, way: ShortestPath) -> str:
    """The address of the first host on the way, on the segment where the way begins."""
    position = 1
    while way.nodes[position] >= len(network.hosts):  # a switch
        position += 1
    edge = network.edges[way.links[position - 1]]
    return network.addresses[edge.link.name, edge.subnet, network.hosts[way.nodes[position]].name]


def _paths(network: _Network, *, is_routed: bool) -> tuple[Path, ...]:
    # Without routing, neighbours use the segment they share even where a way round would be shorter.
    direct = {} if is_routed else neighbours(len(network.hosts), [_as_edge(edge) for edge in network.edges])
    names = [host.name for host in network.hosts]
    paths = []
    for source in range(len(names)):
        rows = _rows(network, source)
        for target in network.ways[source]:
            if source < target < len(names):
                near = direct.get((source, target))
                row, links = rows[target] if near is None else _row(network, near)
                reachable = is_routed or near is not None
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
    edge = network.edges[index]
    lying = edge.directions if edge.nodes[0] == here else turned(edge.directions)
    return row.then(lying, edge.link.rtt_ms, edge.mtu), (*names, edge.link.name)


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

"""Routes and paths of a lab, which follow from its hosts, switches and links. Pure.

They are computed when needed, for one host at a time: a lab of a thousand hosts has half a million paths and up to two
million routes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from minigts.topology.frames import Family
from minigts.topology.plan.directions import PathTotals, turn
from minigts.topology.plan.elements import Direction, Host, Link, Path, Route, Switch
from minigts.topology.routes import switched
from minigts.topology.routes.best_ways import Ways, WeightedGraph
from minigts.topology.routes.graph import Edge, connected_components, equal_costs, hop_cost, protocol_costs
from minigts.topology.tcp import Buffers, buffers, goodput, window_between


@dataclass(frozen=True)
class _Edge:
    """An edge of the network: a link, or one VLAN of a trunk."""

    link: Link
    subnet: str
    nodes: tuple[int, int]
    directions: tuple[Direction, Direction]
    """From the first node to the second, and back."""
    mtu: int


@dataclass(frozen=True, eq=False)
class Underlay:
    """The network as a graph. Nodes are the hosts, then the switches; a switch is one node for each of its VLANs, since
    no frame crosses from one to another. An edge is a link, or a VLAN of it.
    """

    hosts: tuple[Host, ...]
    edges: tuple[_Edge, ...]
    nodes: int
    is_routed: bool
    network: WeightedGraph
    """By the costs of one best way, which are the same in both directions."""
    family: Family = "ipv4"
    """What TCP goes over."""

    @classmethod
    def of(
        cls, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, is_routed: bool
    ) -> Underlay:
        """The underlay of a plan. Without `is_routed` hosts have no routes, and reach only their neighbours."""
        edges = edges_of(hosts, switches, links)
        nodes = len(hosts) + sum(len(switch.vlans) or 1 for switch in switches)
        costs = [hop_cost(link.rtt_ms) if link.cost is None else link.cost for link in (edge.link for edge in edges)]
        network = WeightedGraph(nodes, [edge.nodes for edge in edges], [(cost, cost) for cost in costs], several=False)
        return cls(tuple(hosts), edges, nodes, is_routed, network)

    def set_to(self, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> Underlay:
        """The underlay with other settings of its links. Paths stay: routes do not follow changes while a lab is up."""
        return replace(self, hosts=tuple(hosts), edges=edges_of(hosts, switches, links))

    def path(self, source: str, target: str) -> Path:
        """The path between two hosts. Raises KeyError where they are not connected, or are not two hosts."""
        ends = self._indices[source], self._indices[target]
        first, last = sorted(ends)
        if first == last:
            raise KeyError(f"{source}-{target}")
        neighbour = None if self.is_routed else self._near(first).towards.get(last)
        towards = self._tree(first).towards if neighbour is None else self._near(first).towards
        if last not in towards:
            raise KeyError(f"{source}-{target}")
        steps: list[tuple[int, int]] = []
        while last != first:
            steps += towards[last]
            last = steps[-1][0]
        row: tuple[PathTotals, tuple[str, ...]] = (PathTotals(family=self.family), ())
        for step in reversed(steps):
            row = self._append_edge(*row, *step)
        path = self._path(first, max(ends), *row, reachable=self.is_routed or neighbour is not None)
        return path if first == ends[0] else path.turned

    def paths_from(self, source: str) -> Iterator[Path]:
        """The paths to the connected hosts that come after `source` in the file, in order."""
        first = self._indices[source]
        rows = self._rows(first, self._tree(first))
        direct = {} if self.is_routed else self._rows(first, self._near(first))
        for target in range(first + 1, len(self.hosts)):
            if target in rows:
                row = direct.get(target) or rows[target]
                yield self._path(first, target, *row, reachable=self.is_routed or target in direct)

    @property
    def pairs(self) -> int:
        """The number of pairs of hosts that are connected."""
        return sum(size * (size - 1) // 2 for size in Counter(self._parts).values())

    def reaches(self, source: str, target: str) -> bool:
        """Whether the path between the two, if there is one, is reachable."""
        first, last = sorted((self._indices[source], self._indices[target]))
        return self._parts[first] == self._parts[last] if self.is_routed else last in self._near(first).towards

    def routes_of(self, host: str) -> tuple[Route, ...]:
        """A host's routes: to every other host's own address, then to every segment on which it has no port."""
        index = self._indices[host]
        if not self.is_routed:
            return ()
        tree, source = self._tree(index), self.hosts[index].address
        via = self._gateways(index, tree)
        rank = {node: number for number, node in enumerate(tree.order)}
        own = [
            Route(to=f"{each.address}/32", via=via[target], source=source)
            for target, each in enumerate(self.hosts)
            if target in rank
        ]
        segments = []
        for subnet, members in self._segments.items():
            leading = [member for member in members if member in rank]
            if leading and index not in members:
                segments.append(Route(to=subnet, via=via[min(leading, key=rank.__getitem__)], source=source))
        return (*own, *segments)

    def only_neighbour(self, host: str) -> str | None:
        """The neighbour's address of a host with routes whose one edge leads to another host: all its routes go by it,
        and lead to all `usual_destinations` but its own. None for any other host."""
        index = self._indices[host]
        at_host = self.network.edges_at(index)
        if not self.is_routed or len(at_host) != 1 or self.hosts[index].own_routes:
            return None
        ((beyond, number),) = at_host
        if beyond >= len(self.hosts):
            return None
        edge = self.edges[number]
        return self._addresses[edge.link.name, edge.subnet, self.hosts[beyond].name]

    @property
    def usual_destinations(self) -> tuple[str, ...]:
        """What hosts without routes of their own have routes to: each other's own addresses, and segments. The hosts of
        a lab with routes are all connected."""
        return (*(f"{host.address}/32" for host in self.hosts), *self._segments)

    @cached_property
    def _buffers(self) -> list[Buffers]:
        """The TCP buffers by host."""
        return [buffers(host.sysctls) for host in self.hosts]

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {host.name: index for index, host in enumerate(self.hosts)}

    @cached_property
    def _parts(self) -> list[int]:
        """By host, the number of its connected component."""
        parts = connected_components(range(self.nodes), (edge.nodes for edge in self.edges))
        of_nodes = {node: number for number, part in enumerate(parts) for node in part}
        return [of_nodes[index] for index in range(len(self.hosts))]

    @cached_property
    def _segments(self) -> dict[str, list[int]]:
        """The hosts by subnet, in the order of its links."""
        found: dict[str, list[int]] = {}
        for edge in self.edges:
            found.setdefault(edge.subnet, []).extend(node for node in edge.nodes if node < len(self.hosts))
        return found

    @cached_property
    def _addresses(self) -> dict[tuple[str, str, str], str]:
        """The hosts' addresses, by link, subnet and name."""
        return {(port.link, port.subnet, host.name): port.address for host in self.hosts for port in host.on_segments}

    def _tree(self, source: int) -> Ways:
        return self.network.ways_from(source)

    def _near(self, source: int) -> Ways:
        """Without routing, neighbours use the segment they share even where a detour would be shorter."""
        return self.network.ways_from(source, range(len(self.hosts), self.nodes))

    def _gateways(self, source: int, tree: Ways) -> dict[int, str]:
        """By target, the address of the first host on the path, on the segment where the path begins."""
        via: dict[int, str] = {}
        for node in tree.order:
            ((before, index),) = tree.towards[node]
            if before in via:
                via[node] = via[before]
            elif node < len(self.hosts):
                edge = self.edges[index]
                via[node] = self._addresses[edge.link.name, edge.subnet, self.hosts[node].name]
        return via

    def _rows(self, source: int, tree: Ways) -> dict[int, tuple[PathTotals, tuple[str, ...]]]:
        """By machine, the figures of the path to it and the names of its links: one link more than to the node
        before."""
        rows: dict[int, tuple[PathTotals, tuple[str, ...]]] = {source: (PathTotals(family=self.family), ())}
        for node in tree.order:
            ((before, index),) = tree.towards[node]
            rows[node] = self._append_edge(*rows[before], before, index)
        return rows

    def _append_edge(
        self, row: PathTotals, names: tuple[str, ...], here: int, index: int
    ) -> tuple[PathTotals, tuple[str, ...]]:
        """A row that ends at node `here`, with one edge more."""
        edge = self.edges[index]
        lying = edge.directions if edge.nodes[0] == here else turn(edge.directions)
        return row.then(lying, edge.link.rtt_ms, edge.mtu), (*names, edge.link.name)

    def _path(self, source: int, target: int, row: PathTotals, links: tuple[str, ...], *, reachable: bool) -> Path:
        by_links = row.there
        there = self._through_buffers(by_links, row.rtt_ms, source, target)
        back = self._through_buffers(row.back or by_links, row.rtt_ms, target, source)
        return Path(
            source=self.hosts[source].name,
            target=self.hosts[target].name,
            links=links,
            reachable=reachable,
            rtt_ms=round(row.rtt_ms, 6),
            rate_mbit=there.rate_mbit,
            tcp_ceiling_mbit=there.tcp_ceiling_mbit,
            tcp_least_mbit=there.tcp_least_mbit,
            loss_percent=there.loss_percent,
            back=None if back is there or back == there else back,
        )

    def _through_buffers(self, way: Direction, rtt_ms: float, source: int, target: int) -> Direction:
        """The direction with TCP limited to what the buffers of its two hosts carry. Without a rate it has no
        figure."""
        if way.tcp_ceiling_mbit is None:
            return way
        by = window_between(self._buffers[source], self._buffers[target])
        most_mbit, least_mbit = goodput(way.tcp_ceiling_mbit, by, rtt_ms)
        if least_mbit is None:
            return way
        rounded = {"tcp_ceiling_mbit": round(most_mbit, 6), "tcp_least_mbit": round(least_mbit, 6)}
        return way.model_copy(update=rounded)


def add_costs(
    hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool = False
) -> tuple[Link, ...]:
    """The links with their costs in the hosts' routing protocol, where the file has none. With `ecmp` links of the same
    RTT cost the same."""
    if all(link.cost is not None for link in links):
        return tuple(links)
    if ecmp:
        equal = zip(links, equal_costs([link.rtt_ms for link in links]), strict=True)
        return tuple(link.model_copy(update={"cost": cost}) for link, cost in equal)
    edges = [Edge(each.nodes, each.link.rtt_ms) for each in edges_of(hosts, switches, links)]
    announced = protocol_costs(len(hosts) + len(switches), edges, [link.name for link in links])
    return tuple(link.model_copy(update={"cost": cost}) for link, cost in zip(links, announced, strict=True))


def edges_of(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> tuple[_Edge, ...]:
    """The edges of the network, in the order of the links; none for a link that a spanning tree blocks."""
    off = switched.blocked_links(switches, links)
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
        if link.name not in off
        for vlan, subnet in link.segments
    )

"""Routes that a file gives single hosts (`routes:`): paths that follow them, and what is wrong with them. Pure.

A host's own route holds for every host and segment in its network, instead of the best ways; of several the one with
the longest prefix. The next host goes on by its own routes, so a route may lead in a ring, which `wrong` finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network

from minigts.language.problems import did_you_mean, list_names, quote
from minigts.topology.plan.elements import Host, HostPort, Link, OwnRoute, Path, Route, Switch
from minigts.topology.routes.best_ways import MOST_WAYS
from minigts.topology.routes.graph import hop_cost
from minigts.topology.routes.several import Figures, SeveralWays

Hop = tuple[int, tuple[tuple[int, int], ...]]
"""A next host, and the edges to it, each with the node that sends into it."""
Successors = Mapping[int, tuple[Hop, ...]]
"""The next hosts by host, the last host first: each comes after all that follow it."""


class RouteRing(Exception):
    """Routes lead in a ring: the hosts in it, by number."""

    def __init__(self, hosts: Sequence[int]) -> None:
        super().__init__(hosts)
        self.hosts = tuple(hosts)


@dataclass(frozen=True, eq=False)
class OwnRoutes(SeveralWays):
    """An underlay with hosts that have routes of their own."""

    written: Mapping[int, tuple[tuple[IPv4Network, str], ...]] = field(default_factory=dict)
    """By host, the networks and the neighbours' addresses, the longest prefix first."""
    gateways: dict[int, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    """By host, the next addresses on the best ways to each node."""

    @classmethod
    def of_routes(
        cls, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool
    ) -> OwnRoutes:
        """The underlay of hosts of which some have own routes. Raises KeyError where a route names something else than
        a neighbour."""
        best = SeveralWays.of_costs(hosts, switches, links, ecmp=ecmp)
        plain = not ecmp and all(link.cost_back is None for link in links)
        # As without own routes: of ways that cost the same, the one with fewer hops.
        costs = tuple(_with_hops(edge.link) for edge in best.edges) if plain else best.costs
        own = replace(best, costs=costs)
        written = {
            index: tuple(
                sorted(
                    ((network_of(each.to, hosts), _next_address(hosts, host, each)) for each in host.own_routes),
                    key=lambda route: -route[0].prefixlen,
                )
            )
            for index, host in enumerate(hosts)
            if host.own_routes
        }
        return cls(**{**vars(own), "written": written})

    def routes_of(self, host: str) -> tuple[Route, ...]:
        index = self._indices[host]
        found = []
        best = super().routes_of(host)
        for route in best:
            via = self._written_for(index, IPv4Network(route.to))
            found.append(route if via is None else Route(to=route.to, via=via, source=route.source))
        known = {route.to for route in best}
        source = self.hosts[index].address
        beyond = ((str(network), via) for network, via in self.written.get(index, ()))
        return (*found, *(Route(to=to, via=via, source=source) for to, via in beyond if to not in known))

    def ring_of(self, start: int, to: IPv4Network) -> tuple[str, ...]:
        """The hosts of the ring in which packets from a host to that network end up; empty where there is none."""
        try:
            self._walk(start, to)
        except RouteRing as ring:
            return tuple(self.hosts[each].name for each in ring.hosts)
        return ()

    @cached_property
    def destinations(self) -> tuple[IPv4Network, ...]:
        """Everything that a host may have a route to: hosts, segments, and the networks of own routes."""
        known = [IPv4Network(host.address) for host in self.hosts] + [IPv4Network(each) for each in self._segments]
        own = (network for routes in self.written.values() for network, _ in routes)
        return tuple(dict.fromkeys((*known, *own)))

    def _path_of(self, source: int, target: int) -> Path:
        there = self._walk(source, IPv4Network(self.hosts[target].address))
        back = self._walk(target, IPv4Network(self.hosts[source].address))
        over, over_back = self._listed(there, source, target), self._listed(back, target, source)
        every = {self.edges[edge].link.name for ways in (there, back) for edge in _edges(ways)}
        figures = self._figures_over(there, source, target), self._figures_over(back, target, source)
        return self._made(source, target, figures, (over, over_back), every)

    def _written_for(self, index: int, to: IPv4Network) -> str | None:
        return next((via for network, via in self.written.get(index, ()) if to.subnet_of(network)), None)

    def _next(self, index: int, to: IPv4Network) -> tuple[str, ...]:
        """The neighbours' addresses by which a host sends to that network; none where it is there itself."""
        host = self.hosts[index]
        if any(to.subnet_of(own) for own in self._on[index]):
            return ()
        if (via := self._written_for(index, to)) is not None:
            return (via,)
        if index not in self.gateways:
            self.gateways[index] = self._gateways_of(index, self._ways(index)[0])
        via_best = self.gateways[index]
        if (target := self._owners.get(str(to))) is not None:
            return via_best.get(target, ())
        block = next((each for each in self._networks if to.subnet_of(each)), None)
        route = None if block is None else self._to_segment(host.name, str(block))
        return () if route is None else (route.via, *route.also)

    def _to_segment(self, host: str, subnet: str) -> Route | None:
        return next((route for route in super().routes_of(host) if route.to == subnet), None)

    def _walk(self, start: int, to: IPv4Network) -> Successors:
        """All ways of packets from a host to a network, by the routes of each host on them. Raises Ring."""
        done: dict[int, tuple[Hop, ...]] = {}
        above: list[int] = []
        waiting: list[tuple[int, tuple[Hop, ...] | None]] = [(start, None)]
        while waiting:
            here, hops = waiting.pop()
            if hops is not None:
                done[here] = hops
                above.pop()
            elif here in above:
                raise RouteRing(above[above.index(here) :])
            elif here not in done:
                found = tuple(self._hop(here, via) for via in self._next(here, to))
                above.append(here)
                waiting.append((here, found))
                waiting += [(each, None) for each, _ in reversed(found)]
        return done

    def _hop(self, index: int, via: str) -> Hop:
        """The next host, and the edges to it through switches."""
        to, subnet = self._places[via]
        reached: dict[int, tuple[tuple[int, int], ...]] = {index: ()}
        waiting = [index]
        while to not in reached:
            here = waiting.pop()
            for beside, edge in self._within[subnet][here]:
                if beside not in reached:
                    reached[beside] = (*reached[here], (edge, here))
                    if beside >= len(self.hosts):
                        waiting.append(beside)
        return to, reached[to]

    @cached_property
    def _within(self) -> dict[str, dict[int, list[tuple[int, int]]]]:
        """By segment and node, the nodes beside it and the edges to them."""
        found: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for number, edge in enumerate(self.edges):
            beside = found.setdefault(edge.subnet, {})
            for one, other in (edge.nodes, edge.nodes[::-1]):
                beside.setdefault(one, []).append((other, number))
        return found

    @cached_property
    def _places(self) -> dict[str, tuple[int, str]]:
        """The host and the segment of each address on a link."""
        return {
            port.address: (index, port.subnet) for index, host in enumerate(self.hosts) for port in host.on_segments
        }

    @cached_property
    def _owners(self) -> dict[str, int]:
        return {f"{host.address}/32": index for index, host in enumerate(self.hosts)}

    @cached_property
    def _networks(self) -> tuple[IPv4Network, ...]:
        return tuple(map(IPv4Network, self._segments))

    @cached_property
    def _on(self) -> tuple[tuple[IPv4Network, ...], ...]:
        """By host, the networks where it is itself: its own address, and its segments."""
        return tuple(
            (IPv4Network(host.address), *(IPv4Network(port.subnet) for port in host.on_segments)) for host in self.hosts
        )

    def _figures_over(self, ways: Successors, start: int, end: int) -> Figures:
        found = {end: Figures()}
        for host, hops in ways.items():
            several: Figures | None = found.get(host)
            for after, edges in hops:
                one = found[after]
                for number, sender in edges:
                    edge = self.edges[number]
                    one = one.then(edge.directions[0 if edge.nodes[0] == sender else 1], edge.mtu)
                several = one if several is None else several.join(one)
            assert several is not None  # each way ends at the target, whose figures are there
            found[host] = several
        return found[start]

    def _listed(self, ways: Successors, start: int, end: int) -> tuple[tuple[str, ...], ...]:
        found: list[tuple[int, ...]] = []
        waiting: list[tuple[int, tuple[int, ...]]] = [(start, ())]
        while waiting and len(found) < MOST_WAYS:
            here, passed = waiting.pop()
            if here == end:
                found.append(passed)
                continue
            waiting += [(after, (*passed, *(edge for edge, _ in edges))) for after, edges in reversed(ways[here])]
        return self._named(sorted(found))


def _edges(ways: Successors) -> Iterator[int]:
    for hops in ways.values():
        for _, edges in hops:
            yield from (edge for edge, _ in edges)


def _with_hops(link: Link) -> tuple[int, int]:
    return (hop_cost(link.rtt_ms if link.cost is None else float(link.cost)),) * 2


def network_of(to: str, hosts: Sequence[Host]) -> IPv4Network:
    """The network of a route's destination: the own address of the host of that name, or the network itself."""
    return IPv4Network(to if "/" in to else next((host.address for host in hosts if host.name == to), to))


def _next_address(hosts: Sequence[Host], host: Host, route: OwnRoute) -> str:
    """The address of a route's neighbour, on the segment of its link. Raises KeyError where there is none."""
    own = next((each for each in host.on_segments if (each.link, each.vlan) == (route.link, route.vlan)), None)
    via = next((each for each in hosts if each.name == route.via), None)
    if own is not None and via is not None and via is not host:
        for far in via.on_segments:
            if far.subnet == own.subnet:
                return far.address
    raise KeyError(route.via)


def find_route(hosts: Sequence[Host], host: Host, to: str, via: str) -> OwnRoute:
    """The route that a file says by names. Raises ValueError."""
    names = [each.name for each in hosts]
    if "/" not in to and to not in names:
        raise ValueError(f"no host {quote(to)}; hosts are {list_names(names)}{did_you_mean(to, names)}")
    beside = list(_neighbours(hosts, host))
    known = list(dict.fromkeys(other.name for _, other, _ in beside))
    ends = [(own, other) for own, other, far in beside if via in (other.name, far.address)]
    if len(ends) > 1:
        which = list_names([f"{far.address} on {own.link}" for own, other, far in beside if via == other.name])
        raise ValueError(f"{host.name} and {via} share {len(ends)} segments: write one of the addresses {which}")
    if not ends:
        why = f"{quote(via)} is no neighbour of {host.name}, so nothing can be sent by it"
        raise ValueError(f"{why}; neighbours are {list_names(known)}{did_you_mean(via, known)}")
    own, other = ends[0]
    return OwnRoute(to=to, via=other.name, link=own.link, vlan=own.vlan)


def _neighbours(hosts: Sequence[Host], host: Host) -> Iterator[tuple[HostPort, Host, HostPort]]:
    for own in host.on_segments:
        for other in hosts:
            if other is not host:
                yield from ((own, other, far) for far in other.on_segments if far.subnet == own.subnet)


def wrong(
    hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield each own route that cannot hold: its host, its destination, and why. Rings are looked for only where every
    single route is right."""
    told = list(_wrong_alone(hosts))
    yield from told
    if not told and any(host.own_routes for host in hosts):
        yield from _rings(OwnRoutes.of_routes(hosts, switches, links, ecmp=ecmp))


def _wrong_alone(hosts: Sequence[Host]) -> Iterator[tuple[str, str, str]]:
    names = {host.name for host in hosts}
    for host in hosts:
        first: dict[IPv4Network, str] = {}
        for route in host.own_routes:
            if "/" not in route.to and route.to not in names:
                yield host.name, route.to, f"no host {route.to!r}"
                continue
            try:
                _next_address(hosts, host, route)
            except KeyError:
                yield host.name, route.to, f"{route.via} is no neighbour of {host.name} on link {route.link}"
                continue
            to = network_of(route.to, hosts)
            if IPv4Address(host.address) in to and to.prefixlen == 32:
                yield host.name, route.to, f"a route of {host.name} to itself"
            elif own := next((end for end in host.on_segments if to.subnet_of(IPv4Network(end.subnet))), None):
                yield host.name, route.to, f"{host.name} is on {own.subnet} itself, by {own.name}"
            elif to in first:
                yield host.name, route.to, f"a second route to {to}, which is {first[to]}'s"
            elif host.gateway and not to.prefixlen:
                yield host.name, route.to, f"{host.name} has a `gateway:`, by which everything outside is sent"
            first.setdefault(to, route.to)


def _rings(underlay: OwnRoutes) -> Iterator[tuple[str, str, str]]:
    for index, routes in underlay.written.items():
        host = underlay.hosts[index]
        named = {network_of(each.to, underlay.hosts): each.to for each in host.own_routes}
        said: set[IPv4Network] = set()
        for to in underlay.destinations:
            by = next((network for network, _ in routes if to.subnet_of(network)), None)
            if by is None or by in said:
                continue
            if ring := underlay.ring_of(index, to):
                said.add(by)
                owner = next((each.name for each in underlay.hosts if IPv4Network(each.address) == to), str(to))
                way = " -> ".join((*ring, ring[0]))
                yield host.name, named[by], f"packets to {owner} would go in a ring: {way}"

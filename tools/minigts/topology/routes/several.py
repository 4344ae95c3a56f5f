"""Routes and paths where two hosts have several ways, or the way back is another than the way there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import inf
from typing import NamedTuple

from minigts.topology.fields import MOST_MTU
from minigts.topology.frames import tcp_ceiling_mbit
from minigts.topology.plan.directions import direction
from minigts.topology.plan.elements import Direction, Host, Link, Path, Route, Switch
from minigts.topology.routes.best_ways import MOST_WAYS, Costs, Ways, WeightedGraph, first_edges
from minigts.topology.routes.graph import hop_cost
from minigts.topology.routes.paths import Underlay, edges_of
from minigts.topology.tcp import goodput, window_between

_KEPT = 8
"""The hosts whose figures are kept; half a million pairs would not fit into memory."""


class Figures(NamedTuple):
    """The figures of several ways in one direction, each with its least and its most."""

    delay_ms: tuple[float, float] = (0.0, 0.0)
    arrives: tuple[float, float] = (1.0, 1.0)
    """The chance that a packet arrives."""
    rate_mbit: tuple[float, float] = (inf, inf)
    mtu: tuple[int, int] = (MOST_MTU, MOST_MTU)

    def then(self, link: Direction, mtu: int) -> Figures:
        """The same ways with one link more."""
        rate, arrives = inf if link.rate_mbit is None else link.rate_mbit, 1 - link.loss_percent / 100
        return Figures(
            (self.delay_ms[0] + link.delay_ms, self.delay_ms[1] + link.delay_ms),
            (self.arrives[0] * arrives, self.arrives[1] * arrives),
            (min(self.rate_mbit[0], rate), min(self.rate_mbit[1], rate)),
            (min(self.mtu[0], mtu), min(self.mtu[1], mtu)),
        )

    def join(self, other: Figures) -> Figures:
        """These ways and `other` ones."""
        return Figures(
            (min(self.delay_ms[0], other.delay_ms[0]), max(self.delay_ms[1], other.delay_ms[1])),
            (min(self.arrives[0], other.arrives[0]), max(self.arrives[1], other.arrives[1])),
            (min(self.rate_mbit[0], other.rate_mbit[0]), max(self.rate_mbit[1], other.rate_mbit[1])),
            (min(self.mtu[0], other.mtu[0]), max(self.mtu[1], other.mtu[1])),
        )


def _or_none(rate_mbit: float) -> float | None:
    return None if rate_mbit == inf else rate_mbit


@dataclass(frozen=True, eq=False)
class SeveralWays(Underlay):
    """An underlay whose hosts send over all best ways (`ecmp`), or whose links cost other in each direction."""

    costs: tuple[Costs, ...] = ()
    """By edge."""
    all_of_them: bool = True
    """Whether all best ways are used, or one."""
    figures: dict[int, tuple[Mapping[int, Figures], Mapping[int, Figures]]] = field(default_factory=dict)
    """By host, the figures from it and to it, of the hosts that were asked for last."""

    @classmethod
    def of_costs(
        cls, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool
    ) -> SeveralWays:
        """The underlay by its links' costs, or, where they have none, by round trips and then hops."""
        plain = Underlay.of(hosts, switches, links, is_routed=True)
        costs = tuple(
            edge.link.costs if edge.link.costs is not None else (hop_cost(edge.link.rtt_ms),) * 2
            for edge in plain.edges
        )
        return cls(plain.hosts, plain.edges, plain.nodes, True, plain.network, costs=costs, all_of_them=ecmp)

    def set_to(self, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> SeveralWays:
        made = replace(self, hosts=tuple(hosts), edges=edges_of(hosts, switches, links), figures={})
        vars(made)["_network"] = self._network  # where the cached property keeps it: costs stay
        return made

    def path(self, source: str, target: str) -> Path:
        first, last = sorted((self._indices[source], self._indices[target]))
        if first == last or last not in self._ways(first)[0].towards:
            raise KeyError(f"{source}-{target}")
        path = self._path_of(first, last)
        return path if path.source == source else path.turned

    def paths_from(self, source: str) -> Iterator[Path]:
        first = self._indices[source]
        there, _ = self._ways(first)
        for target in range(first + 1, len(self.hosts)):
            if target in there.towards:
                yield self._path_of(first, target)

    def routes_of(self, host: str) -> tuple[Route, ...]:
        index = self._indices[host]
        there, source = self._ways(index)[0], self.hosts[index].address
        via = self._gateways_of(index, there)
        own = [
            _route(f"{each.address}/32", via[target], source)
            for target, each in enumerate(self.hosts)
            if target in there.towards
        ]
        segments = []
        for subnet, members in self._segments.items():
            leading = [member for member in members if member in there.towards]
            if not leading or index in members:
                continue
            least = min(there.cost[member] for member in leading)
            gateways = (via[member] for member in leading if there.cost[member] == least)
            segments.append(
                _route(subnet, tuple(dict.fromkeys(each for several in gateways for each in several)), source)
            )
        return (*own, *segments)

    def first_links(self, host: str, without: Collection[str] = ()) -> dict[int, tuple[int, frozenset[str]]]:
        """By node, what its best ways cost, and the links by which they begin, over links other than `without`."""
        index = self._indices[host]
        left, network = self._left(frozenset(without))
        ways = network.ways_from(index)
        begun = first_edges(ways, index)
        return {
            node: (ways.cost[node], frozenset(self.edges[left[edge]].link.name for edge in edges))
            for node, edges in begun.items()
        }

    @cached_property
    def _left(self) -> Callable[[frozenset[str]], tuple[list[int], WeightedGraph]]:
        """The edges that are left without some links, and the network of them; kept for the links last asked for."""

        @lru_cache(maxsize=1)
        def left_without(links: frozenset[str]) -> tuple[list[int], WeightedGraph]:
            left = [number for number, edge in enumerate(self.edges) if edge.link.name not in links]
            nodes, costs = [self.edges[each].nodes for each in left], [self.costs[each] for each in left]
            return left, WeightedGraph(self.nodes, nodes, costs, several=True)

        return left_without

    @cached_property
    def _network(self) -> WeightedGraph:
        return WeightedGraph(self.nodes, [edge.nodes for edge in self.edges], self.costs, several=self.all_of_them)

    def _ways(self, index: int) -> tuple[Ways, Ways]:
        return self._network.ways_from(index), self._network.ways_to(index)

    def _figures(self, index: int) -> tuple[Mapping[int, Figures], Mapping[int, Figures]]:
        if index not in self.figures:
            while len(self.figures) >= _KEPT:
                del self.figures[next(iter(self.figures))]
            there, back = self._ways(index)
            self.figures[index] = self._summed(index, there, leaving=True), self._summed(index, back, leaving=False)
        return self.figures[index]

    def _summed(self, index: int, ways: Ways, *, leaving: bool) -> Mapping[int, Figures]:
        """By node, the figures of all best ways between it and the host: from the host, or else to it."""
        found: dict[int, Figures] = {index: Figures()}
        for node in ways.order:
            several: Figures | None = None
            for beside, number in ways.towards[node]:
                edge = self.edges[number]
                sender = beside if leaving else node
                sent = edge.directions[0 if edge.nodes[0] == sender else 1]
                one = found[beside].then(sent, edge.mtu)
                several = one if several is None else several.join(one)
            assert several is not None  # every node in the order has been reached
            found[node] = several
        return found

    def _gateways_of(self, index: int, ways: Ways) -> dict[int, tuple[str, ...]]:
        """By node, the addresses of the first hosts on its best ways, on the segments where these begin."""
        via: dict[int, tuple[str, ...]] = {index: ()}
        for node in ways.order:
            found: dict[str, None] = {}
            for beside, number in ways.towards[node]:
                if via[beside]:
                    found |= dict.fromkeys(via[beside])
                elif node < len(self.hosts):
                    edge = self.edges[number]
                    found[self._addresses[edge.link.name, edge.subnet, self.hosts[node].name]] = None
            via[node] = tuple(found)
        return via

    def _path_of(self, source: int, target: int) -> Path:
        there, back = (each[target] for each in self._figures(source))
        ways, ways_back = self._ways(source)
        over = self._named(ways.edges_to(target, source))
        over_back = tuple(links[::-1] for links in self._named(ways_back.edges_to(target, source)))
        every = {self.edges[edge].link.name for each in (ways, ways_back) for edge in each.edges_within(target)}
        return self._made(source, target, (there, back), (over, over_back), every)

    def _made(
        self,
        source: int,
        target: int,
        figures: tuple[Figures, Figures],
        listed: tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]],
        every: Collection[str],
    ) -> Path:
        """The path of these figures and ways, there and back. `every` are the links of all ways."""
        there, back = figures
        over, over_back = listed
        named = {name for links in (*over, *over_back) for name in links}
        rtt_ms, most_ms = (round(there.delay_ms[end] + back.delay_ms[end], 6) for end in (0, 1))
        sent = self._direction(there, back, (rtt_ms, most_ms), source, target)
        returned = self._direction(back, there, (rtt_ms, most_ms), target, source)
        plain = len(over) == 1 and over_back == (over[0][::-1],)
        return Path(
            source=self.hosts[source].name,
            target=self.hosts[target].name,
            links=over[0],
            reachable=True,
            rtt_ms=rtt_ms,
            rate_mbit=sent.rate_mbit,
            tcp_ceiling_mbit=sent.tcp_ceiling_mbit,
            tcp_least_mbit=sent.tcp_least_mbit,
            loss_percent=sent.loss_percent,
            back=None if returned == sent else returned,
            rtt_most_ms=None if most_ms == rtt_ms else most_ms,
            ways_there=() if plain else over,
            ways_back=() if plain else over_back,
            also_over=tuple(sorted({*every} - named)),
        )

    def _named(self, ways: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.edges[edge].link.name for edge in way) for way in ways)

    def _direction(
        self, own: Figures, other: Figures, rtts_ms: tuple[float, float], source: int, target: int
    ) -> Direction:
        """One direction: the least delay, the lowest rate, the highest loss; and the range of TCP over all ways. A way
        without a rate leaves all without one."""
        rates = None if own.rate_mbit[1] == inf else own.rate_mbit[0], _or_none(other.rate_mbit[0])
        lowest = direction(own.delay_ms[0], 100 * (1 - own.arrives[0]), rates, own.mtu[0], self.family)
        least, most = (
            tcp_ceiling_mbit(
                _or_none(own.rate_mbit[end]), _or_none(other.rate_mbit[end]), own.mtu[end], family=self.family
            )
            for end in (0, 1)
        )
        if rates[0] is None or least is None or most is None:
            return lowest
        by = window_between(self._buffers[source], self._buffers[target])
        slow, fast = goodput(least, by, rtts_ms[1]), goodput(most, by, rtts_ms[0])
        low = round(slow.most_mbit if slow.least_mbit is None else slow.least_mbit, 6)
        high = round(fast.most_mbit, 6)
        return lowest.model_copy(update={"tcp_ceiling_mbit": high, "tcp_least_mbit": None if low == high else low})


def _route(to: str, via: Sequence[str], source: str) -> Route:
    return Route(to=to, via=via[0], source=source, also=tuple(via[1:]))


def number_of_ways(ways: Sequence[Sequence[str]]) -> str:
    """`4`; `64 or more` where not all are listed."""
    return f"{MOST_WAYS} or more" if len(ways) >= MOST_WAYS else str(len(ways) or 1)

"""Routes and paths of a lab whose links say who is whose customer: each host is an autonomous system. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from minigts.topology.plan.elements import Host, Link, Path, Route, Switch
from minigts.topology.routes.paths import Underlay
from minigts.topology.routes.several import Figures, SeveralWays
from minigts.topology.routes.valley_free import NOWHERE, Bond, Relationships, RoutesTo


@dataclass(frozen=True, eq=False)
class PolicyRoutes(SeveralWays):
    """An underlay whose hosts follow the relationships of its links (`routes.valley_free`). The way back may be another
    one, and two hosts may have none."""

    towards: dict[int, RoutesTo] = field(default_factory=dict)
    """By target, the routes that were asked for."""
    cut: dict[frozenset[str], PolicyRoutes] = field(default_factory=dict)
    """The same without links that were cut, by their names."""
    without: frozenset[str] = frozenset()

    @classmethod
    def of_relationships(cls, hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link]) -> PolicyRoutes:
        plain = Underlay.of(hosts, switches, links, is_routed=True)
        return cls(plain.hosts, plain.edges, plain.nodes, True, plain.network, all_of_them=False)

    def path(self, source: str, target: str) -> Path:
        first, last = sorted((self._indices[source], self._indices[target]))
        if first == last or not self._reaches(first, last):
            raise KeyError(f"{source}-{target}")
        path = self._path_of(first, last)
        return path if path.source == source else path.turned

    def paths_from(self, source: str) -> Iterator[Path]:
        first = self._indices[source]
        for target in range(first + 1, len(self.hosts)):
            if self._reaches(first, target):
                yield self._path_of(first, target)

    @property
    def pairs(self) -> int:
        every = range(len(self.hosts))
        return sum(len(every) - 1 - self._to(target).systems.count(NOWHERE) for target in every) // 2

    def reaches(self, source: str, target: str) -> bool:
        return self._reaches(self._indices[source], self._indices[target])

    def routes_of(self, host: str) -> tuple[Route, ...]:
        """A host's routes to all others' own addresses. Nobody announces the links'."""
        index = self._indices[host]
        source, found = self.hosts[index].address, []
        for target, each in enumerate(self.hosts):
            if (number := self._to(target).edges[index]) != NOWHERE:
                edge = self.edges[number]
                over = self.hosts[self._far(number, index)].name
                via = self._addresses[edge.link.name, edge.subnet, over]
                found.append(Route(to=f"{each.address}/32", via=via, source=source))
        return tuple(found)

    def only_neighbour(self, host: str) -> str | None:
        """None: an only neighbour may be one that does not pass all routes on."""
        return None

    def first_links(self, host: str, without: Collection[str] = ()) -> dict[int, tuple[int, frozenset[str]]]:
        left, index = self._cut(frozenset(without)), self._indices[host]
        begun = ((target, left._to(target)) for target in range(len(self.hosts)))
        return {
            target: (to.systems[index], frozenset({self.edges[number].link.name}))
            for target, to in begun
            if (number := to.edges[index]) != NOWHERE
        }

    def _cut(self, without: frozenset[str]) -> PolicyRoutes:
        if not without:
            return self
        if without not in self.cut:
            self.cut.clear()  # of a large lab no more than one is kept
            self.cut[without] = replace(self, towards={}, cut={}, without=without)
        return self.cut[without]

    @cached_property
    def _relationships(self) -> Relationships:
        bonds = [Bond(edge.nodes, edge.link.relationship) for edge in self.edges]
        gone = (number for number, edge in enumerate(self.edges) if edge.link.name in self.without)
        return Relationships(self.nodes, bonds, gone)

    def _to(self, target: int) -> RoutesTo:
        if target not in self.towards:
            self.towards[target] = self._relationships.routes_to(target)
        return self.towards[target]

    def _reaches(self, source: int, target: int) -> bool:
        return self._to(target).edges[source] != NOWHERE

    def _far(self, number: int, end: int) -> int:
        first, second = self.edges[number].nodes
        return second if first == end else first

    def _walk(self, source: int, target: int) -> tuple[tuple[int, ...], Figures]:
        """The way from one host to another by the numbers of its links, with its figures."""
        to, here, figures, passed = self._to(target), source, Figures(), list[int]()
        while here != target:
            number = to.edges[here]
            edge = self.edges[number]
            figures = figures.then(edge.directions[0 if edge.nodes[0] == here else 1], edge.mtu)
            passed.append(number)
            here = self._far(number, here)
        return tuple(passed), figures

    def _path_of(self, source: int, target: int) -> Path:
        (over, there), (over_back, back) = self._walk(source, target), self._walk(target, source)
        listed = self._named([over]), self._named([over_back])
        return self._made(source, target, (there, back), listed, {*listed[0][0], *listed[1][0]})

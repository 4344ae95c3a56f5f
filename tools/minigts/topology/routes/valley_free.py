"""Routes between autonomous systems that follow business relationships: customers, peers and providers. Pure.

Each system prefers a route of a customer to one of a peer, and that to one of a provider; of equal ones the route over
the fewest systems, and then that of the neighbour which comes first. To customers it announces all that it has, to
peers and providers its own addresses and its customers' (Gao and Rexford, 2001). No way goes down and up again, hence
the name. Where no system is, over others, its own provider's provider, these routes are the only stable ones, and BGP
finds them whatever the order of its messages (the same).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

Relationship: TypeAlias = Literal["customer", "peer", "provider"]
"""What the second end of a link is to the first."""
RELATIONSHIPS: tuple[Relationship, ...] = ("customer", "peer", "provider")
INVERSE: dict[Relationship, Relationship] = {"customer": "provider", "peer": "peer", "provider": "customer"}
NOWHERE = -1
_Beside: TypeAlias = "list[list[tuple[int, int]]]"


class Bond(NamedTuple):
    """A link between two systems, by number. A relationship of None joins nobody."""

    ends: tuple[int, int]
    relationship: Relationship | None


class RoutesTo(NamedTuple):
    """The routes of all systems to one."""

    edges: array[int]
    """By system, the link to the next one, by number; NOWHERE at the system itself and where there is no route."""
    systems: array[int]
    """By system, how many more are on the way, the last one included; NOWHERE without a route."""


class Relationships:
    """Numbered systems, and the links between them."""

    def __init__(self, nodes: int, bonds: Sequence[Bond], without: Iterable[int] = ()) -> None:
        """`without` are the numbers of links that are not there."""
        self._nodes, left_out = nodes, frozenset(without)
        of: dict[Relationship, _Beside] = {each: [[] for _ in range(nodes)] for each in RELATIONSHIPS}
        for edge, (ends, relationship) in enumerate(bonds):
            if relationship is not None and edge not in left_out:
                of[relationship][ends[0]].append((ends[1], edge))
                of[INVERSE[relationship]][ends[1]].append((ends[0], edge))
        self._customers, self._peers, self._providers = (of[each] for each in RELATIONSHIPS)

    def routes_to(self, target: int) -> RoutesTo:
        edges, systems = (array("i", [NOWHERE]) * self._nodes for _ in range(2))
        systems[target] = 0
        found = [[target]]
        """The systems that have a route, by its length."""
        while found[-1]:
            found.append([])
            self._spread(found[-2], self._providers, len(found) - 1, edges, systems, found[-1])
        by_customers = [node for level in found for node in level]
        over_peers: dict[int, tuple[int, int, int]] = {}
        for here in by_customers:
            for peer, edge in self._peers[here]:
                if systems[peer] == NOWHERE:
                    over_peers[peer] = min(
                        over_peers.get(peer, (systems[here], here, edge)), (systems[here], here, edge)
                    )
        for peer, (length, _, edge) in over_peers.items():
            systems[peer], edges[peer] = length + 1, edge
            found += [[] for _ in range(length + 2 - len(found))]
            found[length + 1].append(peer)
        length = 0
        while length < len(found):
            if length + 1 == len(found) and found[length]:
                found.append([])
            if found[length]:
                self._spread(found[length], self._customers, length + 1, edges, systems, found[length + 1])
            length += 1
        return RoutesTo(edges, systems)

    def _spread(
        self,
        level: Sequence[int],
        beside: _Beside,
        length: int,
        edges: array[int],
        systems: array[int],
        into: list[int],
    ) -> None:
        """Give a route to all that are beside these systems and have none; of several the first system's."""
        for here in sorted(level):
            for other, edge in beside[here]:
                if systems[other] == NOWHERE:
                    systems[other], edges[other] = length, edge
                    into.append(other)

    def customer_ring(self) -> tuple[int, ...]:
        """Systems of which each is the next one's customer, and the last one the first one's; empty where there are
        none."""
        done: set[int] = set()
        for start in range(self._nodes):
            above: dict[int, Iterator[tuple[int, int]]] = {}
            here = start
            while here not in done:
                above.setdefault(here, iter(self._providers[here]))
                following = next(above[here], None)
                if following is None:
                    done.add(here)
                    del above[here]
                    here = next(reversed(above), here)
                elif following[0] in above:
                    ring = [*above]
                    return tuple(ring[ring.index(following[0]) :])
                elif following[0] not in done:
                    here = following[0]
        return ()

"""An Internet of autonomous systems by number and seed: a few at the top that are all peers, networks that sell transit
below them, and at the edge those that only buy it. Pure.

Who comes later buys of those before it, rather of those that have many customers already, and of those that are near
(preferential attachment, as in Barabási and Albert, 1999, which gives few systems most customers). So nobody is a
customer of its customers, and whoever has a provider has a way up to the top: all reach each other. The shares are
round figures of ours.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from minigts.errors import InputError
from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.formats.limits import MOST_HOSTS
from minigts.formats.network import Network, NetworkLink, NetworkMachine, subnets_for

_T = TypeVar("_T")
FEWEST = 10
HIGHEST_SEED = 999_999
SELLING = 0.15
"""The share of systems that sell transit, and are not at the top."""
PROVIDERS: Mapping[int, float] = {1: 0.45, 2: 0.4, 3: 0.15}
"""How many providers a system has, with the chance of each."""
PEERS_OF_SELLERS = 2
"""How many peers each seller of transit looks for."""
PEERING = 0.1
"""The share of the others that have a peer."""
MOST_LINKS = 40
"""The most links of a system that has a kernel of its own: such a host in virtual time has room for 43."""
NEAR_KM = 1000.0
SAME_CITY_MS = 0.1
CITIES = (
    Site("Amsterdam", 52.37, 4.90),
    Site("Frankfurt", 50.11, 8.68),
    Site("London", 51.51, -0.13),
    Site("Madrid", 40.42, -3.70),
    Site("Stockholm", 59.33, 18.07),
    Site("Vienna", 48.21, 16.37),
    Site("New York", 40.71, -74.01),
    Site("Chicago", 41.88, -87.63),
    Site("Dallas", 32.78, -96.80),
    Site("San Jose", 37.34, -121.89),
    Site("Sao Paulo", -23.55, -46.63),
    Site("Johannesburg", -26.20, 28.05),
    Site("Nairobi", -1.29, 36.82),
    Site("Mumbai", 19.08, 72.88),
    Site("Singapore", 1.35, 103.82),
    Site("Tokyo", 35.68, 139.69),
    Site("Sydney", -33.87, 151.21),
)


class _System(NamedTuple):
    name: str
    city: Site


def internet(ases: int, seed: int, *, light: bool = False) -> Network:
    """An Internet of so many systems; as light hosts these may have any number of links. The same numbers give the same
    network. Raises InputError."""
    if not FEWEST <= ases <= MOST_HOSTS:
        raise InputError(f"--ases {ases}: an Internet here has {FEWEST} to {MOST_HOSTS} systems")
    if not 0 <= seed <= HIGHEST_SEED:
        raise InputError(f"--seed {seed}: a seed is a whole number, from 0 to {HIGHEST_SEED}")
    drawn = _Drawn(ases, random.Random(seed), ases if light else MOST_LINKS)
    top, selling, edge = drawn.sizes
    return Network(
        f"internet-{ases}-{seed}",
        tuple(NetworkMachine(each.name, location=each.city.city) for each in drawn.systems),
        tuple(drawn.links),
        description=f"An Internet of {ases} autonomous systems, of seed {seed}: {top} at the top (t), {selling} that "
        f"sell transit (m) and {edge} at the edge (s). Delays are those of fibre between their cities.",
        routing="bgp",
        subnets=subnets_for(len(drawn.links)),
        light=light,
    )


class _Drawn:
    """The systems and links as they are drawn, in order; a system's providers come before it."""

    def __init__(self, ases: int, draw: random.Random, most_links: int) -> None:
        self._draw, self._most_links = draw, most_links
        top = max(2, round(ases**0.5 / 2))
        selling = round(ases * SELLING)
        self.sizes = top, selling, ases - top - selling
        self.systems: list[_System] = []
        self.links: list[NetworkLink] = []
        self._customers: list[int] = []
        self._links_of = [0] * ases
        self._joined: set[tuple[int, int]] = set()
        for number in range(ases):
            self._add(number, top, selling)
        sellers = range(top, top + selling)
        for seller in sellers:
            for _ in range(PEERS_OF_SELLERS):
                self._peer(seller, sellers)
        for buyer in range(top + selling, ases):
            if draw.random() < PEERING:
                self._peer(buyer, range(top + selling, ases))

    def _add(self, number: int, top: int, selling: int) -> None:
        letter, first = ("t", 0) if number < top else ("m", top) if number < top + selling else ("s", top + selling)
        self.systems.append(_System(f"{letter}{number - first + 1}", self._one_of(CITIES, [1.0] * len(CITIES))))
        self._customers.append(0)
        if letter == "t":
            for other in range(number):
                self._join(other, number, "peer")
            return
        for _ in range(self._one_of([*PROVIDERS], [*PROVIDERS.values()])):
            of = [each for each in range(min(number, top + selling)) if self._is_free(each, number)]
            weights = [(1 + self._customers[each]) * self._nearness(each, number) for each in of]
            if of:
                provider = self._one_of(of, weights)
                self._customers[provider] += 1
                self._join(provider, number, "customer")

    def _peer(self, one: int, among: Sequence[int]) -> None:
        free = [each for each in among if each != one and self._is_free(*sorted((one, each)))]
        if free and self._links_of[one] < self._most_links:
            other = self._one_of(free, [self._nearness(each, one) for each in free])
            self._join(min(one, other), max(one, other), "peer")

    def _is_free(self, one: int, other: int) -> bool:
        """Whether the first has room for a link to the second, and they have none yet."""
        return (one, other) not in self._joined and max(self._links_of[one], self._links_of[other]) < self._most_links

    def _join(self, one: int, other: int, relationship: Literal["customer", "peer"]) -> None:
        self._joined.add((one, other))
        for each in (one, other):
            self._links_of[each] += 1
        ends = self.systems[one], self.systems[other]
        delay_ms = max(SAME_CITY_MS, fibre_ms(distance_km(ends[0].city, ends[1].city)))
        self.links.append(
            NetworkLink((ends[0].name, ends[1].name), delay_ms=(delay_ms, delay_ms), relationship=relationship)
        )

    def _nearness(self, one: int, other: int) -> float:
        return 1 / (1 + distance_km(self.systems[one].city, self.systems[other].city) / NEAR_KM)

    def _one_of(self, items: Sequence[_T], weights: Sequence[float]) -> _T:
        """One of the items, by their weights; of the generator's plain draws, which are the same in every version of
        Python."""
        left = self._draw.random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        return items[-1]

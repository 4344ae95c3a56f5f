"""The twelve families of incidents, and what a seed draws of them. What is drawn follows from family and seed alone.

A family is a stack of cards: of each kind of fault all places on the family's boards, shuffled once. The first seeds
take one card of each kind, the next ones the next card of each, so that thirty seeds are thirty different incidents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from minigts.arena import boards
from minigts.arena.chance import Chance
from minigts.arena.cluster_kinds import CLUSTER_KINDS
from minigts.arena.kinds import BY_NAME, places_of
from minigts.arena.oddities import ODDITIES
from minigts.arena.policy_kinds import POLICY_KINDS
from minigts.errors import InputError
from minigts.language.fields import unknown
from minigts.lessons.break_kinds import Kind
from minigts.lessons.breaks import LessonFault
from minigts.topology.plan.plan import Plan

PROVEN = 30
"""How many seeds of each family `bench/run arena` proves, one by one (docs/arena.md)."""
MOST_SEED = 9999
_PLAIN = ("row", "star", "ring")
_OF_BOTH = ("router-dead", "passive", "protocol-filtered", "no-export", "no-table")
_OF_ALL_CONTAINERS = ("container-off", "container-mtu", "container-paused", "container-filtered", "tunnel-filtered")


@dataclass(frozen=True)
class IncidentFamily:
    """A family: its boards, each with the kinds of faults that are drawn there."""

    about: str
    kinds: Mapping[str, Sequence[str]]


def _plain(*kinds: str) -> Mapping[str, Sequence[str]]:
    return dict.fromkeys(_PLAIN, kinds)


_ADDRESSES = ("link-down", "no-arp", "wrong-neighbour", "duplicate-address", "wrong-mask", "no-address")
"""Without `arp-ignored`: a host that leaves questions unanswered still asks, and neighbours learn its address from
that, so whether anybody complains depends on who speaks first."""
_ROUTES = ("no-route", "wrong-next-hop", "black-hole-route", "rule", "no-forwarding", "ttl")
_SERVICES = (
    *("port-filtered", "port-refused", "port-redirected", "host-filtered", "no-echo", "dead-daemon"),
    *("stopped-daemon", "wrong-port", "local-only", "few-ports", "full-disk", "clock"),
)
_QUALITY = (
    *("slow", "jitter", "lossy", "corrupt", "duplicates", "reordered", "one-way", "rate"),
    "small-buffers",
)
_NAMES = ("wrong-name", "no-name", "no-hosts-file")
_SERVERS = ("name-server-dead", "wrong-resolver", "wrong-record", "no-records", "name-server-filtered")
_LOCAL = ("no-route", "black-hole-route", "rule", "full-disk", "clock", *_NAMES)
"""Faults whose effect is seen on the broken host itself, whatever else is wrong."""
FAMILIES = {
    "addresses": IncidentFamily("interfaces, addresses and ARP", _plain(*_ADDRESSES)),
    "routes": IncidentFamily("static routes, rules and forwarding", _plain(*_ROUTES)),
    "services": IncidentFamily("filters, daemons, a disk, a clock", _plain(*_SERVICES)),
    "links": IncidentFamily("what arrives late, less, twice or changed", _plain(*_QUALITY)),
    "mtu": IncidentFamily("large packets", _plain("mtu", "large-lost", "fragments-lost", "silent-mtu")),
    "names": IncidentFamily(
        "files of names, and name servers",
        {"row": _NAMES, "star": _NAMES, "row-dns": ("wrong-name", *_SERVERS), "star-dns": ("wrong-name", *_SERVERS)},
    ),
    "protocols": IncidentFamily(
        "OSPF and BGP",
        {
            "row-ospf": (*_OF_BOTH, "wrong-timer", "wrong-area"),
            "ring-ospf": (*_OF_BOTH, "wrong-timer", "wrong-area"),
            "ring-bgp": (*_OF_BOTH, "wrong-as", "wrong-cost"),
        },
    ),
    "containers": IncidentFamily(
        "Docker's containers over VXLAN and in a Swarm",
        {
            "four-vxlan": (
                *_OF_ALL_CONTAINERS,
                *("container-address", "tunnel-off", "port-off", "wrong-tunnel-end"),
            ),
            "three-swarm": _OF_ALL_CONTAINERS,
        },
    ),
    "policies": IncidentFamily(
        "the rules by which hosts enforce a policy between containers",
        dict.fromkeys(("four-calico", "row-romana"), tuple(kind.name for kind in POLICY_KINDS)),
    ),
    "kubernetes": IncidentFamily(
        "a cluster of Kubernetes: its objects, its programs, and the network between pods",
        {"star-kubernetes": tuple(kind.name for kind in CLUSTER_KINDS)},
    ),
    "several": IncidentFamily(
        "two or three faults at once, on different hosts", _plain(*_ADDRESSES, *_ROUTES, *_NAMES)
    ),
    "odd": IncidentFamily(
        "nothing wrong at all, something odd and harmless, or a fault beside such",
        _plain(*_ADDRESSES, *_ROUTES, *_SERVICES, *_QUALITY),
    ),
}
"""The families by name."""


@dataclass(frozen=True)
class Incident:
    """What a family's seed draws: a board, faults that are to be found and mended, and oddities that do no harm."""

    family: str
    seed: int
    board: str
    faults: tuple[LessonFault, ...]
    oddities: tuple[LessonFault, ...] = ()

    @property
    def name(self) -> str:
        """`routes/7`"""
        return f"{self.family}/{self.seed}"

    @property
    def lab(self) -> str:
        """The name of its lab and topology."""
        return lab_of(self.family, self.seed)

    @property
    def plan(self) -> Plan:
        return boards.plan_of(self.board, self.lab)


def lab_of(family: str, seed: int) -> str:
    """The name of the lab of an incident."""
    return f"arena-{family}-{seed}"


def parse(name: str) -> tuple[str, int]:
    """The family and the seed of `routes/7`. Raises InputError."""
    family, _, seed = name.partition("/")
    if family not in FAMILIES:
        raise InputError(f"{unknown('family of incidents', 'families', family, list(FAMILIES))}: minigts arena list")
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 4 and 1 <= int(seed) <= MOST_SEED):
        raise InputError(f"{name[:60]!r} names no incident: write {family}/1 to {family}/{MOST_SEED}")
    return family, int(seed)


def draw(family: str, seed: int) -> Incident:
    """The incident of a family's seed, which is the same everywhere."""
    if family == "several":
        return _several(seed)
    if family == "odd":
        return _odd(seed)
    board, fault = _card(family, seed)
    return Incident(family, seed, board, (fault,))


def names_of(family: str) -> Iterator[str]:
    """The names of the incidents that are to be proven."""
    yield from (f"{family}/{seed}" for seed in range(1, PROVEN + 1))


def _several(seed: int) -> Incident:
    """A fault of any kind, and one or two more on other hosts that are seen there beside it."""
    board, first = _card("several", seed)
    plan, chance = boards.plan_of(board, "board"), Chance(f"several/{seed}")
    faults = [first]
    for kind in chance.mix(_LOCAL):
        places = [
            place
            for place in places_of(BY_NAME[kind], plan)
            if kind != first.kind.name and place.host not in {each.place.host for each in faults}
        ]
        if places:
            faults.append(LessonFault(BY_NAME[kind], chance.pick(places)))
        if len(faults) == 2 + (seed % 3 == 0):
            break
    return Incident("several", seed, board, tuple(faults))


def _odd(seed: int) -> Incident:
    """By turns nothing at all, oddities alone, and a fault beside oddities."""
    chance = Chance(f"odd/{seed}")
    board, fault = _card("odd", seed)
    plan = boards.plan_of(board, "board")
    faults = (fault,) if seed % 3 == 2 else ()
    chosen = chance.mix(ODDITIES)[: 0 if seed % 3 == 0 else 2]
    oddities = tuple(LessonFault(kind, chance.pick(list(places_of(kind, plan)))) for kind in chosen)
    return Incident("odd", seed, board, faults, oddities)


def _card(family: str, seed: int) -> tuple[str, LessonFault]:
    stack = _stack(family)
    (kind, places), turn = stack[(seed - 1) % len(stack)], (seed - 1) // len(stack)
    board, fault = places[turn % len(places)]
    return board, LessonFault(BY_NAME[kind], fault.place)


@cache
def _stack(family: str) -> tuple[tuple[str, tuple[tuple[str, LessonFault], ...]], ...]:
    """The kinds of a family in the order in which seeds take them, each with its cards: a board, and a fault."""
    on = FAMILIES[family].kinds
    kinds = list(dict.fromkeys(kind for names in on.values() for kind in names))
    return tuple((kind, tuple(_shuffled(family, BY_NAME[kind]))) for kind in Chance(family).mix(kinds))


def _shuffled(family: str, kind: Kind) -> Iterator[tuple[str, LessonFault]]:
    """The cards of a kind: by turns one of each board, so that all boards come early."""
    by_board = []
    for board, names in FAMILIES[family].kinds.items():
        if kind.name in names:
            cards = [(board, LessonFault(kind, place)) for place in places_of(kind, boards.plan_of(board, "board"))]
            by_board.append(Chance(f"{family}/{kind.name}/{board}").mix(cards))
    by_board = Chance(f"{family}/{kind.name}").mix(by_board)
    for turn in range(max(map(len, by_board), default=0)):
        yield from (card for cards in by_board for card in islice(cards, turn, turn + 1))

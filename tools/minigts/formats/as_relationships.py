"""CAIDA's files of relationships between autonomous systems, serial 1 and 2. They are read.

    # a comment
    174|64512|-1            174 is a provider of 64512
    174|3356|0|bgp          two peers; serial 2 has the source behind

A system becomes a host, `as174`, and a relationship a link. The files know no delays and no rates. Of the Internet's
80,000 systems a lab takes those with the largest customer cones: all systems that are customers of theirs, over others,
too, and themselves. A provider's cone is larger than each of its customers', so every system is taken with all of its
providers, and those that are taken reach each other as on the Internet, if by fewer ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from minigts.formats.limits import MOST_HOSTS
from minigts.formats.lines import FileLines
from minigts.formats.network import Network, NetworkLink, NetworkMachine, subnets_for, title
from minigts.formats.recognised import SYSTEMS
from minigts.language.problems import quote, require_none

HIGHEST_ASN = 4_294_967_294
"""The highest number of a system that RFC 7300 allows."""
_LINE = re.compile(r"([0-9]{1,10})\|([0-9]{1,10})\|(-?[0-9]{1,3})(?:\|[A-Za-z0-9_,.-]{0,40})?", re.ASCII)
_MOST_PROBLEMS, _LISTED = 20, 8
_KINDS: Mapping[str, str] = {"-1": "customer", "0": "peer"}


class _Relationship(NamedTuple):
    ends: tuple[int, int]
    """A provider and its customer, or two peers."""
    is_peering: bool
    line: int


def is_named_so(file: str | PurePath) -> bool:
    """Whether a file of that name has AS relationships."""
    return str(file).lower().endswith(SYSTEMS)


def read(text: str, file: str, *, leave_out: bool = False, largest: int | None = None) -> Network:
    """The network of a file, or of the `largest` so many systems of it. Raises InputError with every problem, each with
    its line; of many the first."""
    reading = _Reading(file, leave_out=leave_out)
    every = reading.relationships(text)
    require_none(reading.problems, file)
    if largest is not None and not 2 <= largest <= MOST_HOSTS:
        reading.wrong(0, f"--ases {largest}: a lab has 2 to {MOST_HOSTS} systems")
    systems = sorted({end for each in every for end in each.ends})
    if not systems and not reading.problems:
        reading.wrong(0, "no relationship in it; a line is as 174|64512|-1")
    if largest is None and len(systems) > MOST_HOSTS:
        most = f"a lab has at most {MOST_HOSTS}"
        reading.wrong(
            0, f"{len(systems)} systems, and {most}: --ases 100 takes the 100 with the largest customer cones"
        )
    require_none(reading.problems, file)
    taken, sizes = systems, reading.cones(every)
    require_none(reading.problems, file)
    if largest is not None and largest < len(systems):
        taken = sorted(systems, key=lambda each: (-sizes.get(each, 1), each))[:largest]
        reading.notes.add("systems", "the file", f"{largest} of {len(systems)}, those with the largest customer cones")
    reading.notes.add("delays", "the links", "none: the file knows none; `defaults: {link: {rtt: 20ms}}` gives all one")
    return _network(file, taken, every, reading)


def _network(file: str, taken: Sequence[int], every: Sequence[_Relationship], reading: _Reading) -> Network:
    there = frozenset(taken)
    kept = [each for each in every if there.issuperset(each.ends)]
    lines = {end: each.line for each in reversed(kept) for end in each.ends}
    machines = tuple(NetworkMachine(f"as{each}", lines.get(each, 1), asn=each) for each in taken)
    links = tuple(
        NetworkLink(
            (f"as{each.ends[0]}", f"as{each.ends[1]}"),
            each.line,
            relationship="peer" if each.is_peering else "customer",
        )
        for each in kept
    )
    return Network(
        title(PurePath(file).name.partition(".as-rel")[0], "systems"),
        machines,
        links,
        routing="bgp",
        subnets=subnets_for(len(links)),
        notes=reading.notes.lines(),
    )


class _Reading(FileLines):
    def relationships(self, text: str) -> list[_Relationship]:
        found: dict[frozenset[int], _Relationship] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if len(self.problems) >= _MOST_PROBLEMS:
                break
            if line and not line.startswith("#"):
                for each in self._relationship(line, number):
                    first = found.setdefault(frozenset(each.ends), each)
                    if first is not each:
                        what = "|".join(map(str, each.ends))
                        self.wrong(number, f"a second relationship of {what}, whose first is on line {first.line}")
        return [*found.values()]

    def _relationship(self, line: str, number: int) -> Iterator[_Relationship]:
        parts = _LINE.fullmatch(line.rstrip())
        if parts is None:
            self.wrong(number, f"{quote(line[:60])} is no relationship: write it as 174|64512|-1, or |0 for two peers")
            return
        one, other = (int(parts[each]) for each in (1, 2))
        for end in (one, other):
            if not 1 <= end <= HIGHEST_ASN:
                self.wrong(number, f"{end} is no number of a system: from 1 to {HIGHEST_ASN}")
                return
        if one == other:
            self.wrong(number, f"a relationship of {one} to itself")
        elif parts[3] not in _KINDS:
            why = "a lab knows -1, a provider and its customer, and 0, two peers"
            self.lose(number, f"the relationship {parts[3]}", f"as{one}-as{other}", why)
        else:
            yield _Relationship((one, other), _KINDS[parts[3]] == "peer", number)

    def cones(self, every: Sequence[_Relationship]) -> dict[int, int]:
        """By system, how many there are in its customer cone, itself included; without those that have no customers. A
        ring of customers is a problem."""
        customers: dict[int, list[int]] = {}
        for each in every:
            if not each.is_peering:
                customers.setdefault(each.ends[0], []).append(each.ends[1])
        cones: dict[int, frozenset[int]] = {}
        for start in customers:
            above: dict[int, Iterator[int]] = {}
            here: int | None = start
            while here is not None and here not in cones:
                left = above.setdefault(here, (each for each in customers[here] if each in customers))
                below = next((each for each in left if each not in cones), None)
                if below in above:
                    self._wrong_ring([*above][[*above].index(below) :], every)
                    return {}
                if below is not None:
                    here = below
                    continue
                parts = (cones.get(each, frozenset([each])) for each in customers[here])
                cones[here] = frozenset([here]).union(*parts)
                del above[here]
                here = next(reversed(above), None)
        return {each: len(cone) for each, cone in cones.items()}

    def _wrong_ring(self, ring: Sequence[int], every: Sequence[_Relationship]) -> None:
        ends = (ring[-1], ring[0])
        line = next(each.line for each in every if each.ends == ends and not each.is_peering)
        words = ", a provider of ".join(map(str, (*ring[:_LISTED], *(("…",) if len(ring) > _LISTED else ring[:1]))))
        self.wrong(line, f"a ring of providers, whose routes may never settle: {words}")

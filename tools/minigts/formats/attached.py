"""Interfaces and addresses that another tool's file asks for: those that a lab can have, and those that it cannot.
Pure.

A lab's follow from its links: a host's ports are eth1, eth2, … in their order, and the hosts of a segment have its
network's first addresses in that order. So links are sorted to give what the file asks for, where that is possible.
Where it is not, an interface such as eth2 and an address are written with their link. An interface of another name is
renamed, with a note, and Linux keeps the file's name beside the new one.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise

from minigts.formats.network import NetworkLink, NetworkMachine, Notes, ports
from minigts.language import interface_names
from minigts.language.blocks import reserved_block
from minigts.language.interface_names import number_of
from minigts.language.problems import Location, quote

LONGEST_PREFIX = 30
_OF_PORTS = re.compile(r"eth[0-9]{1,9}", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class WantedLink:
    """What a file asks for at one end of a link."""

    where: Location
    name: str | None = None
    """The interface as the file calls it."""
    number: int | None = None
    """Which of its machine's ports it is to be: 2 for `eth2`. None for another name, and without a name."""
    address: IPv4Address | None = None


@dataclass(frozen=True)
class Attached:
    """A link with its network, and what its file asks for at each end."""

    link: NetworkLink
    ends: tuple[WantedLink, WantedLink]
    network: IPv4Network | None = None
    where: Location = ()
    """The network's place in the file."""


@dataclass
class Fitted:
    """The links in their new order. `lost` has what the file asks for in vain: the place, what, whose, and why."""

    links: list[NetworkLink] = field(default_factory=list)
    lost: list[tuple[Location, str, str, str]] = field(default_factory=list)
    renamed: dict[str, dict[str, str]] = field(default_factory=dict)
    """By host, the interfaces with other names than in the file: `{"a": {"net0": "eth1"}}`."""
    twice: list[tuple[Location, str]] = field(default_factory=list)
    """Interfaces that the file uses for two links: the place of the second, and a message."""

    def note_names(self, notes: Notes) -> None:
        """Note the hosts' interfaces with other names here."""
        for host, names in self.renamed.items():
            for name, ours in names.items():
                why = f"it is {ours} here, where a host's ports are eth1, eth2, …"
                if interface_names.why_not(name) is None:
                    why = f"it is {ours} here, and `interfaces:` keeps the name beside it"
                notes.add(f"interface {name[:40]}", host, why)


def fit_links(machines: Mapping[str, NetworkMachine], attached: Sequence[Attached]) -> Fitted:
    """The links, as close to what the file asks for as possible. `machines` are by their names in the lab."""
    found = Fitted()
    _require_apart(attached, found)
    chosen = [attached[index] for index in _order(machines, attached)]
    others = _with_other_ports(machines, chosen)
    found.links = [_named(each, others) for each in chosen]
    for (link, names), each in zip(ports(found.links), chosen, strict=True):
        for end, ours, wanted in zip(link.ends, names, each.ends, strict=True):
            if wanted.name is not None and not machines[end].is_switch and _is_renamed(wanted, wanted.name, ours):
                found.renamed.setdefault(end, {})[wanted.name] = ours
    _address(machines, chosen, found)
    return found


def _is_renamed(wanted: WantedLink, name: str, ours: str) -> bool:
    """Whether an interface is called otherwise here; one with a name of its own and the right number is not."""
    return name != ours and (wanted.number != number_of(ours) or _OF_PORTS.fullmatch(name) is not None)


def _with_other_ports(machines: Mapping[str, NetworkMachine], chosen: Sequence[Attached]) -> set[str]:
    """The hosts to whose ports the order of the links does not give the file's numbers."""
    return {
        end
        for (link, names), each in zip(ports(each.link for each in chosen), chosen, strict=True)
        for end, ours, wanted in zip(link.ends, names, each.ends, strict=True)
        if wanted.name not in (None, ours) and number_of(wanted.name) is not None and not machines[end].is_switch
    }


def _named(each: Attached, others: Container[str]) -> NetworkLink:
    """The link with the file's names of its interfaces, where Linux can have them: those of ports on `others`, and all
    that can stand beside a port's."""
    names = ((end, wanted.name) for end, wanted in zip(each.link.ends, each.ends, strict=True) if wanted.name)
    can = ((end, name) for end, name in names if end in others or number_of(name) is None)
    kept = ((end, name) for end, name in can if number_of(name) is not None or not interface_names.why_not(name))
    return replace(each.link, interfaces=tuple(kept))


def _require_apart(attached: Sequence[Attached], found: Fitted) -> None:
    """An interface is the end of one link."""
    first: dict[tuple[str, str], str] = {}
    for each in attached:
        for end, wanted in zip(each.link.ends, each.ends, strict=True):
            if wanted.name is None:
                continue
            if (end, wanted.name) in first:
                wrong = f"interface {quote(wanted.name)} of {end} is an end of {first[end, wanted.name]} already"
                found.twice.append((wanted.where, f"{wrong}: an interface is the end of one link"))
            first.setdefault((end, wanted.name), "-".join(each.link.ends))


def _order(machines: Mapping[str, NetworkMachine], attached: Sequence[Attached]) -> list[int]:
    """Indices of the links in an order that gives hosts' ports the wanted numbers, as far as these agree."""
    after = _after(machines, attached)
    waiting = Counter(later for those in after.values() for later in those)
    ready = [index for index in after if not waiting[index]]
    left, order = set(after), list[int]()
    while left:
        # Where the wanted numbers form a cycle, the first link of the file comes first.
        index = heapq.heappop(ready) if ready else min(left)
        if index not in left:
            continue
        left.discard(index)
        order.append(index)
        for later in after[index]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, later)
    return order


def _after(machines: Mapping[str, NetworkMachine], attached: Sequence[Attached]) -> dict[int, set[int]]:
    """By link, those that have to come after it: the next link of each of its hosts."""
    ends: dict[str, list[tuple[int, WantedLink]]] = {}
    for index, each in enumerate(attached):
        for end, wanted in zip(each.link.ends, each.ends, strict=True):
            if not machines[end].is_switch:
                ends.setdefault(end, []).append((index, wanted))
    after: dict[int, set[int]] = {index: set() for index in range(len(attached))}
    for own in ends.values():
        for before, later in pairwise(_numbered(own)):
            if before != later:
                after[before].add(later)
    return after


def _numbered(own: Sequence[tuple[int, WantedLink]]) -> list[int]:
    """A host's links in the order of their numbers. Links without one get the free numbers, in the order of their names
    where these differ in digits alone, else in file order."""
    given = {wanted.number for _, wanted in own if wanted.number is not None}
    others = [(index, wanted) for index, wanted in own if wanted.number is None]
    if len({_DIGITS.sub("0", wanted.name or "") for _, wanted in others}) == 1:
        others.sort(key=lambda each: [int(digits) for digits in _DIGITS.findall(each[1].name or "")])
    free = iter(number for number in range(1, 2 * len(own) + 1) if number not in given)
    numbers = [(wanted.number, index) for index, wanted in own if wanted.number is not None]
    numbers += [(next(free), index) for index, _ in others]
    return [index for _, index in sorted(numbers)]


def _address(machines: Mapping[str, NetworkMachine], chosen: Sequence[Attached], found: Fitted) -> None:
    """Give segments the networks of the file, and record which addresses their hosts do not get."""
    taken: list[IPv4Network] = []
    for segment in segments(machines, [each.link for each in chosen]):
        asked = [(chosen[index].network, chosen[index].where, index) for index in segment]
        network, where, index = next(
            ((net, where, index) for net, where, index in asked if net), (None, (), segment[0])
        )
        if network is None:
            _lose_addresses(chosen, segment, found, "its link has no network, such as 192.0.2.0/24, in the file")
            continue
        owner = found.links[index].name or "-".join(found.links[index].ends)
        if (why := _why_not(network, taken)) is not None:
            found.lost.append((where, f"network {network}", owner, why))
            _lose_addresses(chosen, segment, found, why)
            continue
        taken.append(network)
        found.lost += [
            (where, f"network {other}", owner, f"its segment has {network}")
            for other, where, _ in asked
            if other not in (None, network)
        ]
        found.links[index] = replace(found.links[index], subnet=str(network))
        _compare(machines, chosen, segment, network, found)


def _why_not(network: IPv4Network, taken: Sequence[IPv4Network]) -> str | None:
    if network.prefixlen > LONGEST_PREFIX or network.prefixlen == 0:
        return f"a link's network is from /1 to /{LONGEST_PREFIX}"
    if (user := reserved_block(network, overlaid=False)) is not None:
        return f"it overlaps {user}"
    return next((f"it overlaps {other}, another link's" for other in taken if other.overlaps(network)), None)


def _lose_addresses(chosen: Sequence[Attached], segment: Sequence[int], found: Fitted, why: str) -> None:
    for index in segment:
        for end, wanted in zip(chosen[index].link.ends, chosen[index].ends, strict=True):
            if wanted.address is not None:
                found.lost.append((wanted.where, f"address {wanted.address}", end, why))


def _compare(
    machines: Mapping[str, NetworkMachine],
    chosen: Sequence[Attached],
    segment: Sequence[int],
    network: IPv4Network,
    found: Fitted,
) -> None:
    """Write addresses that the order of the links does not give with their links, or record why they cannot be. A link
    between two hosts is reversed where that gives the right ones."""
    hosts = [
        (end, wanted)
        for index in segment
        for end, wanted in zip(chosen[index].link.ends, chosen[index].ends, strict=True)
        if not machines[end].is_switch
    ]
    if len(segment) == 1 and len(hosts) == 2 and _wrong(hosts, network) and not _wrong(hosts[::-1], network):
        found.links[segment[0]] = found.links[segment[0]].turned
        return
    if not _wrong(hosts, network):
        return
    owners: dict[IPv4Address, str] = {}
    for index in segment:
        for end, wanted in zip(chosen[index].link.ends, chosen[index].ends, strict=True):
            address = wanted.address
            if address is None or machines[end].is_switch:
                continue
            if address not in network or address in (network[0], network[-1]):
                found.lost.append((wanted.where, f"address {address}", end, f"it is no host's address in {network}"))
            elif owners.setdefault(address, end) != end:
                found.lost.append((wanted.where, f"address {address}", end, f"it is that of {owners[address]} already"))
            else:
                link = found.links[index]
                found.links[index] = replace(link, addresses=(*link.addresses, (end, str(address))))


def _wrong(hosts: Sequence[tuple[str, WantedLink]], network: IPv4Network) -> list[tuple[str, WantedLink, IPv4Address]]:
    first = int(network.network_address) + 1
    given = [(end, wanted, IPv4Address(min(first + count, 2**32 - 1))) for count, (end, wanted) in enumerate(hosts)]
    return [(end, wanted, own) for end, wanted, own in given if wanted.address not in (None, own)]


def segments(machines: Mapping[str, NetworkMachine], links: Sequence[NetworkLink]) -> Iterator[list[int]]:
    """Indices of links that share a network: each between two hosts, and those that switches join."""
    of_switch: dict[str, str] = {}

    def root(name: str) -> str:
        while (joined_to := of_switch.get(name, name)) != name:
            name = joined_to
        return name

    for link in links:
        if all(machines[end].is_switch for end in link.ends):
            of_switch[root(link.ends[0])] = root(link.ends[1])
    joined: dict[str, list[int]] = {}
    for index, link in enumerate(links):
        switch = next((end for end in link.ends if machines[end].is_switch), None)
        if switch is None:
            yield [index]
        else:
            joined.setdefault(root(switch), []).append(index)
    yield from joined.values()

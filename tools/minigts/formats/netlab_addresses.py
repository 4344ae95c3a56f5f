"""Networks, addresses and numbers of interfaces, as netlab's links and interfaces have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from typing import TypeAlias

from minigts.formats.attached import WantedLink
from minigts.formats.keys import NETLAB
from minigts.formats.yaml_document import Document, Layers, is_truth
from minigts.language.interface_names import number_of
from minigts.language.problems import Location, did_you_mean, quote
from minigts.language.tree import Data

Interface: TypeAlias = tuple[str, Mapping[str, Data], Location]
"""An interface: its node, its settings, and their place."""
_LONGEST = 40


def network(
    document: Document, named: Mapping[str, Data], of_link: Layers, interfaces: Sequence[Interface], owner: str
) -> tuple[IPv4Network | None, Location]:
    """A link's network and its place: by its `prefix`, which may be the name of one, or by an interface's address."""
    data, where = of_link.get("prefix")
    if isinstance(data, str) and data in named:
        name, data = data, named[data]
        where = ("prefix", name)
    if is_truth(data):
        document.lose(where, f"prefix {data}", owner, "every link has IPv4 addresses")
        return None, where
    if isinstance(data, dict):
        document.judge(data, where, NETLAB["prefix"], owner)
        allocation = data.get("allocation")
        if allocation not in (None, "sequential", "p2p", "id_based"):
            why = "addresses are given by p2p, sequential or id_based"
            document.lose((*where, "allocation"), f"allocation {quote(allocation)}", owner, why)
        data, where = data.get("ipv4"), (*where, "ipv4")
    if data is None:
        given = ((settings.get("ipv4"), (*at, "ipv4")) for _, settings, at in interfaces)
        data, where = next(((text, at) for text, at in given if isinstance(text, str) and "/" in text), (None, where))
    return _read_network(document, named, data, where, owner), where


def _read_network(
    document: Document, named: Mapping[str, Data], data: Data, where: Location, owner: str
) -> IPv4Network | None:
    if data is None:
        return None
    if is_truth(data):
        document.lose(where, f"ipv4 {data}", owner, "every link has IPv4 addresses")
        return None
    try:
        if not isinstance(data, str) or "/" not in data or len(data) > _LONGEST:
            raise ValueError
        return IPv4Network(data, strict=False)
    except ValueError:
        known = did_you_mean(data, named) if isinstance(data, str) else ""
        document.wrong(where, f"{quote(data)} is not an IPv4 network, as in 192.0.2.0/24{known}")
        return None


def interface_address(document: Document, interface: Interface, of_link: IPv4Network | None) -> WantedLink:
    """An interface's number and address: `192.0.2.1/24`, `192.0.2.1`, or the N-th of the link's network."""
    _, settings, at = interface
    where, index, name = (*at, "ifindex"), settings.get("ifindex"), settings.get("ifname")
    if index is not None and not (isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 6):
        document.wrong(where, f"{quote(index)} is not the number of an interface")
        index = None
    called = f"eth{index}" if isinstance(index, str) else None
    if isinstance(name, str):
        called, where = name, (*at, "ifname")
    address = _address(document, interface, of_link)
    place: Location = (*at, "ipv4") if called is None else where
    return WantedLink(place, called, None if called is None else number_of(called), address)


@dataclass(frozen=True)
class SegmentMember:
    """The properties of a node by which netlab gives it addresses."""

    name: str
    number: int
    """The node's `id`, its own or a free one."""
    is_host: bool
    is_switch: bool = False


def allocate(
    of_link: Layers, network: IPv4Network, wanted: Sequence[WantedLink], members: Sequence[SegmentMember]
) -> list[WantedLink]:
    """`wanted` with the addresses that netlab would give to ends without one: on a link between routers the first two,
    in the order of the nodes' names; else those of the nodes' numbers, where the network has as many
    (docs/addressing.md); else the first, in the link's order."""
    kind, usable = of_link.get("type")[0], network.num_addresses - 2
    data = of_link.get("prefix")[0]
    policy = data.get("allocation") if isinstance(data, dict) else None
    is_lan = kind == "lan" or (kind is None and (len(members) > 2 or any(each.is_host for each in members)))
    if policy is None:
        fits = max(each.number for each in members) <= usable
        policy = "p2p" if not is_lan and len(members) == 2 else "id_based" if fits else "sequential"
    by_name = sorted(range(len(members)), key=lambda index: members[index].name)
    counts = {
        "p2p": [by_name.index(index) + 1 for index in range(len(members))],
        "id_based": [each.number for each in members],
    }.get(str(policy), [*range(1, len(members) + 1)])
    return [
        each if each.address is not None or member.is_switch else replace(each, address=_nth(str(count), network))
        for each, member, count in zip(wanted, members, counts, strict=True)
    ]


def _address(document: Document, interface: Interface, of_link: IPv4Network | None) -> IPv4Address | None:
    node, settings, at = interface
    data, where = settings.get("ipv4"), (*at, "ipv4")
    if data is None:
        return None
    text, _, length = data.partition("/") if isinstance(data, str) and len(data) <= _LONGEST else ("", "", "")
    is_count = text.isascii() and text.isdigit() and len(text) < 10
    why = None
    try:
        address = None if is_count and of_link is None else _nth(text, of_link) if is_count else IPv4Address(text)
    except ValueError:
        if not is_truth(text):
            document.wrong(where, f"{quote(data)} is not an IPv4 address, as in 192.0.2.1/24")
            return None
        address, why = None, "every end of a link has an IPv4 address"
    if address is not None and of_link is not None and (address not in of_link or length not in _lengths(of_link)):
        why = f"it is not of its link's network {of_link}"
    elif address is None and why is None:
        why = "its link has no network in the file"
    if why is None:
        return address
    document.lose(where, f"{'ipv4' if is_truth(text) else 'address'} {text}", node, why)
    return None


def _nth(text: str, of_link: IPv4Network | None) -> IPv4Address:
    return IPv4Address(min((0 if of_link is None else int(of_link.network_address)) + int(text), 2**32 - 1))


def _lengths(of_link: IPv4Network) -> tuple[str, str]:
    return "", str(of_link.prefixlen)

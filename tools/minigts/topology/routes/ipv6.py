"""A lab's IPv6 addresses and routes, one for each IPv4 address and route. Pure.

All come from one /48. The n-th segment, from 0, has its n-th /64, and its machines the same numbers there as in the
segment's IPv4 network: 10.20.0.1 corresponds to fd6d:6967:7473::1. The n-th host's own address, from 1, is
fd6d:6967:7473:ffff::n, a /128 on its loopback. Switches bridge frames of both versions, and have IPv6 addresses only in
a lab without IPv4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from minigts.language.problems import quote
from minigts.topology.fields import MOST_HOSTS, MOST_LINKS, HostName, Name, OnSegment
from minigts.topology.plan import elements

DEFAULT = "fd6d:6967:7473::/48"
"""A unique local prefix (RFC 4193); its forty bits, which are to be drawn at random, are the letters `migts`."""
PREFIX = 48
SEGMENT_PREFIX = 64
MOST_SEGMENTS = 0xFFFF
"""The most segments, numbered from 0; the /64 with this number has the hosts' own addresses."""
LEAST_MTU = 1280
"""The least MTU of a link that carries IPv6 (RFC 8200, section 5)."""

_USABLE = (IPv6Network("fc00::/7"), IPv6Network("2000::/3"))
_LONGEST = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")


def block(text: str) -> str:
    """The /48 from which addresses come, in canonical form. Raises ValueError."""
    try:
        network = IPv6Network(text) if len(text) <= _LONGEST else None
    except ValueError:
        network = None
    if network is None or network.prefixlen != PREFIX:
        raise ValueError(f"{quote(text)} is not an IPv6 network of 48 bits: write it as in {DEFAULT}")
    if not any(network.subnet_of(usable) for usable in _USABLE):
        raise ValueError(f"{network} holds no addresses for hosts: take one of fc00::/7, which are local, or 2000::/3")
    return str(network)


@lru_cache(maxsize=4096)
def _address(text: str) -> str:
    try:
        same = len(text) <= _LONGEST and str(IPv6Address(text)) == text and "%" not in text
    except ValueError:
        same = False
    if not same:
        raise ValueError(f"{quote(text)} is not an IPv6 address, as in fd6d:6967:7473::1")
    return text


@lru_cache(maxsize=4096)
def _network(text: str) -> str:
    try:
        same = len(text) <= _LONGEST and str(IPv6Network(text)) == text
    except ValueError:
        same = False
    if not same:
        raise ValueError(f"{quote(text)} is not an IPv6 network, as in fd6d:6967:7473::/64")
    return text


Address: TypeAlias = Annotated[str, AfterValidator(_address)]
Network: TypeAlias = Annotated[str, AfterValidator(_network)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ipv6Route(_Frozen):
    """As `plan.Route`."""

    to: Network
    via: Address
    source: Address
    also: Annotated[tuple[Address, ...], Field(exclude_if=lambda each: not each)] = ()


class Ipv6Port(_Frozen):
    """The IPv6 address of a host's end of a link, in the segment's /64."""

    name: OnSegment
    address: Address
    peer_address: Address | None
    """The address at the link's other end; None where that is a switch."""


class Ipv6Host(_Frozen):
    """The IPv6 addresses of a host."""

    name: HostName
    address: Address
    """The host's own address, a /128 on its loopback."""
    ports: tuple[Ipv6Port, ...]

    def port(self, name: str) -> Ipv6Port:
        """The port called `name`. Raises KeyError."""
        for port in self.ports:
            if port.name == name:
                return port
        raise KeyError(name)


class Ipv6Segment(_Frozen):
    """The IPv6 network of a link; links that meet in a switch share it. A trunk has that of its first VLAN."""

    link: Name
    subnet: Network


class Ipv6(_Frozen):
    """All IPv6 addresses of a lab. They follow from the prefix and the rest of the plan; others are refused."""

    prefix: Annotated[Network, AfterValidator(block)]
    hosts: Annotated[tuple[Ipv6Host, ...], Field(max_length=MOST_HOSTS)]
    links: Annotated[tuple[Ipv6Segment, ...], Field(max_length=MOST_LINKS)]

    def subnet(self, link: str) -> str:
        """The IPv6 network of the link called `link`. Raises KeyError."""
        for segment in self.links:
            if segment.link == link:
                return segment.subnet
        raise KeyError(link)


class Numbering:
    """The IPv6 address for each IPv4 address. `own` are the hosts' own addresses in order, `subnets` those of all
    links.

    `members` are pairs of a subnet and an address on it.
    """

    def __init__(self, prefix: str, own: Sequence[str], subnets: Sequence[str], members: Iterable[tuple[str, str]]):
        self._base = int(IPv6Network(prefix).network_address)
        numbers = {subnet: number for number, subnet in enumerate(dict.fromkeys(subnets))}
        first = {subnet: int(IPv4Network(subnet).network_address) for subnet in numbers}
        self._addresses = {
            address: self._at(numbers[subnet], int(IPv4Address(address)) - first[subnet]) for subnet, address in members
        }
        self._addresses |= {address: self._at(MOST_SEGMENTS, number) for number, address in enumerate(own, 1)}
        self._networks = {f"{address}/32": f"{self._addresses[address]}/128" for address in own}
        self._networks |= {subnet: f"{self._at(number, 0)}/{SEGMENT_PREFIX}" for subnet, number in numbers.items()}

    def _at(self, segment: int, member: int) -> str:
        return str(IPv6Address(self._base + (segment << 64) + member))

    def address(self, beside: str) -> str:
        """The IPv6 address for IPv4 address `beside`. Raises KeyError where no host has that."""
        return self._addresses[beside]

    def address_if_any(self, beside: str) -> str | None:
        return self._addresses.get(beside)

    def network(self, beside: str) -> str:
        """Raises KeyError."""
        return self._networks[beside]

    def knows(self, beside: str) -> bool:
        """Whether there is an IPv6 network for that IPv4 network."""
        return beside in self._networks

    def route(self, beside: elements.Route) -> Ipv6Route:
        """Raises KeyError."""
        to, via, source = self.network(beside.to), self.address(beside.via), self.address(beside.source)
        return Ipv6Route(to=to, via=via, source=source, also=tuple(map(self.address, beside.also)))


def numbering_of(
    hosts: Sequence[elements.Host],
    links: Sequence[elements.Link],
    prefix: str,
    switches: Sequence[elements.Switch] = (),
) -> Numbering:
    subnets = [subnet for link in links for _, subnet in link.segments]
    members = [(port.subnet, port.address) for host in hosts for port in host.on_segments]
    of_switches = [each for switch in switches for each in switch.vlans or (switch,)]
    members += [(_segment(each.address, each.prefix), each.address) for each in of_switches]
    return Numbering(prefix, [host.address for host in hosts], subnets, members)


def _segment(address: str, prefix: int) -> str:
    return str(IPv4Network(f"{address}/{prefix}", strict=False))


def lab_addresses(hosts: Sequence[elements.Host], links: Sequence[elements.Link], prefix: str) -> Ipv6:
    """The IPv6 addresses of a lab in block `prefix`. Raises KeyError where an IPv4 address is outside of its
    segment."""
    numbering = numbering_of(hosts, links, prefix)

    def of(host: elements.Host) -> Ipv6Host:
        ports = (
            Ipv6Port(
                name=port.name,
                address=numbering.address(port.address),
                peer_address=numbering.address_if_any(port.peer_address),
            )
            for port in host.on_segments
        )
        return Ipv6Host(name=host.name, address=numbering.address(host.address), ports=tuple(ports))

    return Ipv6(
        prefix=prefix,
        hosts=tuple(map(of, hosts)),
        links=tuple(Ipv6Segment(link=link.name, subnet=numbering.network(link.subnet)) for link in links),
    )

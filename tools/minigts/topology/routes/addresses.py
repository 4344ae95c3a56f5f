"""Addresses of a lab: a subnet for each segment, an address of its own for each host, a MAC for each port.

A host with `gateway: true` has one more interface. Behind it is no link of the lab but a program of this machine, which
makes connections of its own for the host, so the same addresses serve every such host. They are link-local (RFC 3927):
no segment may have them, and they hide nothing of what lies outside.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from minigts.language.blocks import OWN_MACS

DEFAULT_SUBNETS = "10.20.0.0/14"
"""The block from which segments get their subnets by default."""
_SEGMENT_PREFIX = 24
_FIRST_HOST = IPv4Address("10.255.0.0")


@lru_cache(maxsize=1024)
def host_address(index: int) -> str:
    """The loopback address of the host at `index` in the file, counted from 0."""
    return str(_FIRST_HOST + index + 1)


def mac(link_index: int, end: int) -> str:
    """The MAC of end 0 or 1 of a link. Unique within a lab for 65536 links."""
    return f"{OWN_MACS}{link_index >> 8:02x}:{link_index & 0xFF:02x}:{end + 1:02x}"


def overlaps(networks: Sequence[tuple[int, IPv4Network]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of keys whose networks overlap, the higher key first. Each such network is in at least one pair."""
    widest: tuple[int, IPv4Network] | None = None
    for key, network in sorted(networks, key=lambda item: (item[1].network_address, item[1].prefixlen, item[0])):
        if widest is not None and network.network_address <= widest[1].broadcast_address:
            yield max(key, widest[0]), min(key, widest[0])
        if widest is None or network.broadcast_address > widest[1].broadcast_address:
            widest = (key, network)


def capacity(pool: IPv4Network) -> int:
    """How many segments `pool` holds."""
    return 1 << max(0, _SEGMENT_PREFIX - pool.prefixlen)


def assign(
    explicit: Sequence[IPv4Network | None], pool: IPv4Network, members: Sequence[int] | None = None
) -> list[IPv4Network | None]:
    """A subnet for each segment: its explicit one, or the next free /24 of `pool`, or a wider block where the number of
    `members` needs it and the pool has it.

    The `explicit` networks must not overlap. A subnet is None where the pool is exhausted.
    """
    prefix = max(_SEGMENT_PREFIX, pool.prefixlen)
    size = 1 << (32 - prefix)
    begin, end = int(pool.network_address) // size, int(pool.broadcast_address) // size + 1
    taken: set[int] = set()
    for network in explicit:
        if network is not None and network.overlaps(pool):
            first, last = int(network.network_address) // size, int(network.broadcast_address) // size
            taken.update(range(max(first, begin), last + 1))
    lowest = begin
    found: list[IPv4Network | None] = []
    for index, network in enumerate(explicit):
        longest = 32 - (members[index] + 1).bit_length() if members is not None else prefix
        own = min(prefix, max(longest, pool.prefixlen))
        count = 1 << (prefix - own)
        while lowest in taken:
            lowest += 1
        starts = range(lowest if count == 1 else begin, end, count)
        start = next((each for each in starts if taken.isdisjoint(range(each, each + count))), None)
        if network is not None or start is None:
            found.append(network)
            continue
        taken.update(range(start, start + count))
        found.append(IPv4Network((start * size, own)))
    return found


def free_addresses(subnet: IPv4Network, taken: Container[str]) -> Iterator[str]:
    """The addresses of hosts in a subnet that nobody has, the lowest first. Whoever gives one out makes it `taken`."""
    return (text for address in subnet.hosts() if (text := str(address)) not in taken)


BUILTIN_ADDRESS = "127.0.0.1"
"""Where a switch's built-in OpenFlow controller listens."""
GATEWAY_INTERFACE = "gateway"
GATEWAY_MAC = "02:6d:67:ff:ff:ff"
"""The interface's MAC. MACs of links end in 1 or 2."""
GATEWAY_NETWORK, GATEWAY_PREFIX = "169.254.77.0/24", 24
GATEWAY_ADDRESS, GATEWAY_ROUTER, GATEWAY_NAME_SERVER = "169.254.77.100", "169.254.77.2", "169.254.77.3"


def gateway_in_words(hosts: Iterable[str]) -> str:
    """The ways out of a lab through `hosts`, in words."""
    return f"a way out to the networks of this machine, through {', '.join(hosts)}"

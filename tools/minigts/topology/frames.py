"""The headers of a frame, and the TCP goodput that they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

ETHERNET_HEADER_BYTES = 14
"""What tbf counts in addition to the IP packet, without check sequence and preamble."""
Family: TypeAlias = Literal["ipv4", "ipv6"]
IP_HEADER_BYTES: Mapping[Family, int] = {"ipv4": 20, "ipv6": 40}
"""Without options or extension headers (RFC 791, RFC 8200)."""
TCP_HEADER_BYTES = 32
"""TCP 20, timestamps 12 (RFC 7323)."""
TAG_BYTES = 4
"""The VLAN tag of a frame (IEEE 802.1Q)."""
VLANS = range(1, 4095)
"""The numbers of VLANs; 0 and 4095 are reserved (IEEE 802.1Q, section 9.6)."""


def families(*, ipv6: bool, ipv4: bool = True) -> tuple[Family, ...]:
    """The versions of IP of a lab whose hosts and links have addresses of IPv4, of IPv6, or of both. Hosts reach each
    other by the first one, unless an overlay or a command says otherwise."""
    there: tuple[tuple[Family, bool], ...] = ("ipv4", ipv4), ("ipv6", ipv6)
    return tuple(family for family, has in there if has)


def family_of(address: str) -> Family:
    return "ipv6" if ":" in address else "ipv4"


def tcp_ceiling_mbit(
    rate_mbit: float | None, back_mbit: float | None, mtu: int, outer_mtu: int | None = None, family: Family = "ipv4"
) -> float | None:
    """The TCP goodput in Mbit/s that a rate allows with packets of `mtu` bytes, which links carry in packets of
    `outer_mtu`; None without a rate.

    It is None, too, where the rate back is too low to acknowledge every segment (4.4 % of the rate at MTU 1500). TCP
    acknowledges every second segment, and each one after a loss (RFC 5681, section 4.2). Acknowledgements may then be
    the limit. How low it is depends on the queue in front of them: the next acknowledgement makes up for a dropped one.
    """
    outer = mtu if outer_mtu is None else outer_mtu
    frame, headers = outer + ETHERNET_HEADER_BYTES, TCP_HEADER_BYTES + IP_HEADER_BYTES[family]
    if rate_mbit is None:
        return None
    acknowledgement = ETHERNET_HEADER_BYTES + headers + outer - mtu
    if back_mbit is not None and back_mbit < rate_mbit * acknowledgement / frame:
        return None
    return rate_mbit * (mtu - headers) / frame

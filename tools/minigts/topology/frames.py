"""What a frame holds beside its payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

ETHERNET_HEADER_BYTES = 14
"""What tbf counts of a frame beside the IP packet; the check sequence and the preamble are not there yet."""
Family: TypeAlias = Literal["ipv4", "ipv6"]
IP_HEADER_BYTES: Mapping[Family, int] = {"ipv4": 20, "ipv6": 40}
"""Without options or extension headers (RFC 791, RFC 8200)."""
TCP_HEADER_BYTES = 32
"""TCP 20, timestamps 12 (RFC 7323)."""
TAG_BYTES = 4
"""Of a frame that says its VLAN (IEEE 802.1Q)."""
VLANS = range(1, 4095)
"""Their numbers; 0 and 4095 are kept for other uses (IEEE 802.1Q, section 9.6)."""


def family_of(address: str) -> Family:
    return "ipv6" if ":" in address else "ipv4"


def tcp_ceiling_mbit(
    rate_mbit: float | None, back_mbit: float | None, mtu: int, outer_mtu: int | None = None, family: Family = "ipv4"
) -> float | None:
    """What a rate leaves for TCP's payload in packets of `mtu` bytes, which links carry as `outer_mtu`; None without a
    rate.

    None, too, where the way back is too thin for an acknowledgement of every segment (4.4 % of the rate at MTU 1500):
    one of every second is usual, one of each follows after a loss (RFC 5681, section 4.2). Then these may be the limit,
    and how far down depends on the queue in front of them: one that is dropped there is made up for by the next.
    """
    outer = mtu if outer_mtu is None else outer_mtu
    frame, headers = outer + ETHERNET_HEADER_BYTES, TCP_HEADER_BYTES + IP_HEADER_BYTES[family]
    if rate_mbit is None:
        return None
    acknowledgement = ETHERNET_HEADER_BYTES + headers + outer - mtu
    if back_mbit is not None and back_mbit < rate_mbit * acknowledgement / frame:
        return None
    return rate_mbit * (mtu - headers) / frame

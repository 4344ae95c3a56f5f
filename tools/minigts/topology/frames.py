"""What a frame holds beside its payload."""

from __future__ import annotations

ETHERNET_HEADER_BYTES = 14
"""What tbf counts of a frame beside the IP packet; the check sequence and the preamble are not there yet."""
TCP_AND_IP_HEADERS_BYTES = 52
"""IPv4 20, TCP 20, timestamps 12 (RFC 7323)."""
SEGMENTS_AN_ACKNOWLEDGEMENT = 2
"""A receiver acknowledges at least every second full segment (RFC 9293, section 3.8.6.3)."""


def tcp_ceiling_mbit(
    rate_mbit: float | None, back_mbit: float | None, mtu: int, outer_mtu: int | None = None
) -> float | None:
    """What a rate leaves for TCP's payload in packets of `mtu` bytes, which links carry as `outer_mtu`; None without a
    rate.

    None, too, where the way back is too thin for an acknowledgement of every second segment (2.2 % of the rate at MTU
    1500). Then these are the limit. How far down depends on the queue in front of them, since one that is dropped there
    is made up for by the next, which acknowledges all before it.
    """
    outer = mtu if outer_mtu is None else outer_mtu
    frame = outer + ETHERNET_HEADER_BYTES
    if rate_mbit is None:
        return None
    acknowledgement = ETHERNET_HEADER_BYTES + TCP_AND_IP_HEADERS_BYTES + outer - mtu
    acknowledgements_mbit = rate_mbit * acknowledgement / frame / SEGMENTS_AN_ACKNOWLEDGEMENT
    if back_mbit is not None and back_mbit < acknowledgements_mbit:
        return None
    return rate_mbit * (mtu - TCP_AND_IP_HEADERS_BYTES) / frame

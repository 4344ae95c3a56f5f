"""What a frame holds beside its payload."""

from __future__ import annotations

ETHERNET_HEADER_BYTES = 14
"""What tbf counts of a frame beside the IP packet; the check sequence and the preamble are not there yet."""
TCP_AND_IP_HEADERS_BYTES = 52
"""IPv4 20, TCP 20, timestamps 12 (RFC 7323)."""
SEGMENTS_AN_ACKNOWLEDGEMENT = 2
"""A receiver acknowledges at least every second full segment (RFC 9293, section 3.8.6.3)."""


def acknowledgements_mbit(rate_mbit: float, mtu: int, added_bytes: int = 0) -> float:
    """What the acknowledgements of TCP that fills a rate take of the way back: 2.2 % of it at MTU 1500.

    `added_bytes` is what an overlay puts around each packet.
    """
    share = (ETHERNET_HEADER_BYTES + TCP_AND_IP_HEADERS_BYTES + added_bytes) / (mtu + ETHERNET_HEADER_BYTES)
    return rate_mbit * share / SEGMENTS_AN_ACKNOWLEDGEMENT

"""What a frame holds beside its payload."""

from __future__ import annotations

ETHERNET_HEADER_BYTES = 14
"""What tbf counts of a frame beside the IP packet; the check sequence and the preamble are not there yet."""
TCP_AND_IP_HEADERS_BYTES = 52
"""IPv4 20, TCP 20, timestamps 12 (RFC 7323)."""

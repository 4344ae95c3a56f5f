"""Blocks of IPv4 addresses that no segment of a lab may take, and MAC addresses. Pure."""

from __future__ import annotations

import re
from ipaddress import IPv4Network

MAC = re.compile(r"[0-9a-f][02468ace](?::[0-9a-f]{2}){5}", re.ASCII)
"""The MAC address of one machine, in lower case."""
OWN_MACS = "02:6d:67:"
"""What the MAC addresses of links begin with, where a file says no others."""

OF_OVERLAYS = (
    (IPv4Network("10.0.0.0/16"), "Docker Swarm's own networks"),
    (IPv4Network("172.16.0.0/12"), "Docker and the overlays"),
)
"""Blocks that a segment may take in a lab over which no overlay is laid, and their users."""
RESERVED = (
    (IPv4Network("10.255.0.0/16"), "the hosts' own addresses"),
    (IPv4Network("0.0.0.0/8"), "this network (RFC 1122)"),
    (IPv4Network("127.0.0.0/8"), "loopback"),
    (IPv4Network("169.254.0.0/16"), "link-local addresses"),
    (IPv4Network("224.0.0.0/3"), "multicast and reserved addresses"),
)
"""Blocks that a segment must not take, and their users."""


def reserved_block(network: IPv4Network, *, overlaid: bool = True) -> str | None:
    """The reserved block that `network` overlaps, with its user; None when it is free. Without `overlaid`, the blocks
    of overlays are free."""
    for block, user in (*RESERVED, *(OF_OVERLAYS if overlaid else ())):
        if network.overlaps(block):
            return f"{block}, which is kept for {user}"
    return None

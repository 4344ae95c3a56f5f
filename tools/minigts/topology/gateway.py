"""The way out of a lab that `gateway: true` gives a host: one more interface, and the network on it.

The interface leads to a program of this machine, not to a link: the program makes connections for the host, so every
such host has the same addresses. They are link-local (RFC 3927): no segment may have them, and they hide no address
outside of the lab.
"""

from __future__ import annotations

from collections.abc import Iterable

INTERFACE = "gateway"
MAC = "02:6d:67:ff:ff:ff"
"""The interface's MAC. MACs of links end in 1 or 2."""
NETWORK, PREFIX = "169.254.77.0/24", 24
ADDRESS, ROUTER, NAME_SERVER = "169.254.77.100", "169.254.77.2", "169.254.77.3"


def in_words(hosts: Iterable[str]) -> str:
    """The ways out of a lab through `hosts`, in words."""
    return f"a way out to the networks of this machine, through {', '.join(hosts)}"

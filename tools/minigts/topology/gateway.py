"""The way out of a lab that `gateway: true` gives a host: one more interface, and the network behind it.

Behind it is no link of the lab but a program of this machine, which makes connections of its own for the host. So the
same addresses serve every such host. They are link-local (RFC 3927): no segment may have them, and they hide nothing of
what lies outside.
"""

from __future__ import annotations

from collections.abc import Iterable

INTERFACE = "gateway"
MAC = "02:6d:67:ff:ff:ff"
"""No link's, whose last byte is 1 or 2."""
NETWORK, PREFIX = "169.254.77.0/24", 24
ADDRESS, ROUTER, NAME_SERVER = "169.254.77.100", "169.254.77.2", "169.254.77.3"


def in_words(hosts: Iterable[str]) -> str:
    """What a lab has in which these hosts have it."""
    return f"a way out to the networks of this machine, through {', '.join(hosts)}"

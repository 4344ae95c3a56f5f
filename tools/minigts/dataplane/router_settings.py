"""What the routing programs of a lab's hosts have in common: table, timers, ports and costs. Pure.

The underlay's program is apart from an overlay's on the same host: it has its own table of routes, and its own BGP
port. Each host has its own directory for it, since hosts may share a file system.
"""

from __future__ import annotations

from minigts.topology.plan.addressing import Addressing
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.valley_free import INVERSE, Relationship

TABLE, RULE = 20, 32000
"""The kernel's table of these routes, looked up before the main one, where the host's own segments and overlays are."""
HELLO_S, DEAD_S = 1, 4
"""The seconds between hellos of OSPF and IS-IS, and until a silent neighbour counts as gone (RFC 2328, section 9.5)."""
BGP_PORT = 1179
HOLD_S, KEEPALIVE_S = 3, 1
"""BGP's hold time and interval of keepalives; RFC 4271, section 4.2, allows no hold time below three seconds."""
OF_CUSTOMER, OF_PEER, OF_PROVIDER = 300, 200, 100
"""The local preference of a route by whose it is, where links have relationships. Own routes count as customers'."""


def directory(host: Host) -> str:
    return f"/run/minigts/underlay/{host.name}"


def destinations(plan: Plan, host: Host, addressing: Addressing) -> list[str]:
    """The networks to which the kernel gets routes, in CIDR form."""
    return [route.to for route in addressing.routes(plan.routes_of(host.name))]


def preference(relationship: Relationship) -> int:
    """The local preference of routes of such a neighbour."""
    return {"customer": OF_CUSTOMER, "peer": OF_PEER, "provider": OF_PROVIDER}[relationship]


def relationships(plan: Plan, host: Host) -> dict[str, Relationship]:
    """By link, what the neighbour is to the host; empty where links have no relationships."""
    return {
        link.name: link.relationship if link.ends[0] == host.name else INVERSE[link.relationship]
        for link in plan.links
        if link.relationship is not None and host.name in link.ends
    }


def costs_from(plan: Plan, host: Host) -> dict[str, int | None]:
    """By link, what it costs to send over it from the host."""
    return {link.name: link.cost_from(host.name) for link in plan.links if host.name in link.ends}

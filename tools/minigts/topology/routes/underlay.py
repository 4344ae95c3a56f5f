"""Which engine finds a lab's routes: one way between two hosts, several ways, or the hosts' own routes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.topology.plan.elements import Host, Link, Switch
from minigts.topology.routes.own_routes import OwnRoutes
from minigts.topology.routes.paths import Underlay
from minigts.topology.routes.several import SeveralWays


def has_several_ways(hosts: Sequence[Host], links: Sequence[Link], *, ecmp: bool) -> bool:
    """Whether two hosts that have routes may have several ways between them, or a way back that is another."""
    return ecmp or any(link.cost_back is not None for link in links) or any(host.own_routes for host in hosts)


def underlay_of(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool) -> Underlay:
    """The underlay of hosts that have routes."""
    if any(host.own_routes for host in hosts):
        return OwnRoutes.of_routes(hosts, switches, links, ecmp=ecmp)
    if has_several_ways(hosts, links, ecmp=ecmp):
        return SeveralWays.of_costs(hosts, switches, links, ecmp=ecmp)
    return Underlay.of(hosts, switches, links, is_routed=True)

"""Which engine finds a lab's routes: one way between two hosts, several ways, the hosts' own routes, or those that
follow customers, peers and providers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.topology.plan.elements import Host, Link, Switch
from minigts.topology.routes.own_routes import OwnRoutes
from minigts.topology.routes.paths import Underlay
from minigts.topology.routes.policy_routes import PolicyRoutes
from minigts.topology.routes.several import SeveralWays


def has_several_ways(hosts: Sequence[Host], links: Sequence[Link], *, ecmp: bool) -> bool:
    """Whether two hosts that have routes may have several ways between them, or a way back that is another."""
    by_links = any(link.cost_back is not None or link.relationship is not None for link in links)
    return ecmp or by_links or any(host.own_routes for host in hosts)


def underlay_of(hosts: Sequence[Host], switches: Sequence[Switch], links: Sequence[Link], *, ecmp: bool) -> Underlay:
    """The underlay of hosts that have routes."""
    if any(link.relationship is not None for link in links):
        return PolicyRoutes.of_relationships(hosts, switches, links)
    if any(host.own_routes for host in hosts):
        return OwnRoutes.of_routes(hosts, switches, links, ecmp=ecmp)
    if has_several_ways(hosts, links, ecmp=ecmp):
        return SeveralWays.of_costs(hosts, switches, links, ecmp=ecmp)
    return Underlay.of(hosts, switches, links, is_routed=True)

"""Which hosts share an overlay network: all hosts of a lab, or those of each group. Pure."""

from __future__ import annotations

from minigts.topology import overlay_names
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

UNDERLAY = overlay_names.UNDERLAY
"""The overlay that stands for plain hosts."""
UNDERLAYS = overlay_names.UNDERLAYS
"""Plain hosts by their IPv4 addresses, and by their IPv6 addresses."""


class Team(tuple[Host, ...]):
    """The hosts of one overlay network, in the topology's order; the first is the leader."""

    @property
    def leader(self) -> Host:
        return self[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self)


def teams(plan: Plan, overlay: str) -> tuple[Team, ...]:
    """The teams of `overlay`: one of all hosts, or one for each group. With plain hosts a host in no group is a team of
    its own; with an overlay it is in none.
    """
    if not plan.groups:
        return (Team(plan.hosts),)
    made = [Team(plan.host(name) for name in group.hosts) for group in plan.groups]
    if overlay in UNDERLAYS:
        made += [Team((host,)) for host in plan.hosts if plan.group_of(host.name) is None]
    return tuple(made)


def team_of(plan: Plan, overlay: str, host: str) -> Team:
    """The team of a host. Raises KeyError for a host that is in none."""
    for team in teams(plan, overlay):
        if host in team.names:
            return team
    raise KeyError(host)

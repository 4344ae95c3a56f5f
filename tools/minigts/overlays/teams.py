"""Over which hosts an overlay is laid: all of a lab, or each of its groups by itself. Pure."""

from __future__ import annotations

from minigts.topology.parts import Host
from minigts.topology.plan import Plan

UNDERLAY = "none"
"""The plain hosts."""
UNDERLAYS = (UNDERLAY, "none-v6")
"""They, by either of their addresses."""


class Team(tuple[Host, ...]):
    """The hosts of one overlay network, in their order; the first leads."""

    @property
    def leader(self) -> Host:
        return self[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self)


def teams(plan: Plan, overlay: str) -> tuple[Team, ...]:
    """The hosts over which `overlay` is laid: all, or each group by itself. Plain hosts that are in no group are there
    as well, one by one.
    """
    if not plan.groups:
        return (Team(plan.hosts),)
    made = [Team(plan.host(name) for name in group.hosts) for group in plan.groups]
    if overlay in UNDERLAYS:
        made += [Team((host,)) for host in plan.hosts if plan.group_of(host.name) is None]
    return tuple(made)


def team_of(plan: Plan, overlay: str, host: str) -> Team:
    """The team of a host that is in one. Raises KeyError."""
    for team in teams(plan, overlay):
        if host in team.names:
            return team
    raise KeyError(host)

"""What `image:` of a topology's hosts means to providers that have no place for one."""

from __future__ import annotations

from minigts.errors import EnvironmentLacks
from minigts.topology.plan import Plan


def refuse(plan: Plan, provider: str, why: str) -> None:
    """Raise EnvironmentLacks for a host that is to have an image of the user's, with its place."""
    for host in plan.hosts:
        if host.software is not None and (root := host.software.root) is not None:
            raise EnvironmentLacks(
                f"{root.place}: host {host.name} is to have an image of its own, and provider {provider} has no place "
                f"for one, since {why}; provider uml has"
            )

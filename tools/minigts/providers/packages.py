"""What `packages:` of a topology's hosts means to providers: which a host wants, and the refusal of who has none."""

from __future__ import annotations

from minigts.errors import EnvironmentLacks
from minigts.topology.parts import Host
from minigts.topology.plan import Plan


def of(host: Host) -> tuple[str, ...]:
    """The packages that a host asks for, in one order for all that ask for the same."""
    return tuple(sorted({each.name for each in host.software.packages})) if host.software is not None else ()


def refuse(plan: Plan, provider: str, why: str) -> None:
    """Raise EnvironmentLacks for a host that is to have packages, with its first one's place."""
    for host in plan.hosts:
        if host.software is not None and host.software.packages:
            raise EnvironmentLacks(
                f"{host.software.packages[0].place}: host {host.name} is to have packages, and provider {provider} "
                f"installs none, since {why}; provider uml does"
            )

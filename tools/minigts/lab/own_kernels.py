"""What only a host with a kernel of its own can have done to it."""

from __future__ import annotations

from minigts.errors import InputError
from minigts.topology.plan.plan import Plan

WHY = "light hosts share a kernel"


def require_of(plan: Plan, name: str, what: str) -> None:
    """Raise InputError for a light host. `what` is a word for what was asked, such as `kill`."""
    if name in plan.sharing:
        raise InputError(f"{name} is a light host, and {WHY}: no {what} for one of them alone")


def require_of_all(plan: Plan, what: str) -> None:
    """Raise InputError for a lab with light hosts. `what` is a clause without subject, such as `cannot be kept`."""
    if plan.sharing:
        raise InputError(f"{min(plan.sharing)} is a light host, and {WHY}: a lab with such hosts {what}")

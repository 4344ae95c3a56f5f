"""The links of a plan that a user's words mean: a link's name, its ends in either order, or two machines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigts.errors import InputError
from minigts.language.problems import did_you_mean, list_names, quote

if TYPE_CHECKING:  # verbs that name a link import this, and start without models
    from minigts.topology.plan.elements import Link
    from minigts.topology.plan.plan import Plan


def links_between(plan: Plan, first: str, second: str) -> tuple[Link, ...]:
    """Every link between two machines, given in either order. Raises InputError when there is none."""
    joining = tuple(link for link in plan.links if set(link.ends) == {first, second})
    if not joining:
        others = ", ".join("-".join(link.ends) for link in plan.links)
        raise InputError(f"no link between {first} and {second}; links are {others}")
    return joining


def require_one_name(plan: Plan, first: str, second: str) -> None:
    """Raises InputError where two machines are named in place of their link."""
    machines = {each.name for each in plan.machines}
    if {first, second} <= machines:
        names = [link.name for link in links_between(plan, first, second)]
        raise InputError(f"{first} and {second} are hosts: name their link, {' or '.join(names)}")


def link_named_if_any(plan: Plan, name: str) -> Link | None:
    """The link of that name; None where there is none, or several have its ends in the other order."""
    turned = [link for link in plan.links if "-".join(reversed(link.ends)) == name]
    named = next((link for link in plan.links if link.name == name), None)
    return named or (turned[0] if len(turned) == 1 else None)


def link_named(plan: Plan, name: str) -> Link:
    """The link of that name; the name's ends may be in either order. Raises InputError when there is none."""
    if (found := link_named_if_any(plan, name)) is not None:
        return found
    known = [link.name for link in plan.links]
    raise InputError(f"no link {quote(name)}; links are {list_names(known)}{did_you_mean(name, known)}")

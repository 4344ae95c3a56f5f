"""What a link costs, by which routes are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.problems import Finding, path_of
from minigts.topology.end_setting import EndSetting
from minigts.topology.host_setting import Elsewhere
from minigts.topology.read.declared import DraftLink
from minigts.topology.read.per_direction import COST, BothWays


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    """Costs are compared with each other, so all links have one, or none."""
    costly = next((link for link in links if link.costs is not None), None)
    for link in links:
        if costly is not None and link.costs is None:
            remedy = "give each link one, or all the same by `defaults: {link: {cost: 10}}`"
            yield link.where, f"no cost, and {path_of(costly.where)} has one: {remedy}"
            return


Cost: TypeAlias = Annotated[
    Annotated[BothWays[int], *COST] | None,
    EndSetting(
        by_hand=True,
        problems=_problems,
        elsewhere=Elsewhere(
            what="cost",
            why="no other format has it",
            has=lambda of: of.link.cost is not None and not of.plan.has_routers,
            lost=True,
        ),
    ),
    Field(description="What the link costs, from 1 to 65535: the lowest sum is the route. Default: by round trips."),
]

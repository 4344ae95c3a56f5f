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
        page="""\
optional, on all links or none, not with `routing: neighbours` · whole number, 1 to 65535, or one for each direction ·
default: none, the lowest RTT is best · `cost: {to: 10, from: 100}`

What the link costs. Each host sends by the way with the lowest sum of costs. With `ospf` this is the cost of an
interface, with `bgp` it is added to the MED ([routing protocols](routing-protocols.md#what-a-link-costs)). With other
costs in each direction the way back may be another one than the way there. The plan's RTT is then the delay there plus
the delay back, each over its own way, and `minigts plan` shows both. Of ways that cost the same the first by order in
the file is taken, or with [`ecmp`](#ecmp) all of them. `defaults: {link: {cost: 10}}` gives all links the same cost.
Costs do not change while the lab is up.
""",
    ),
    Field(description="What the link costs, from 1 to 65535: the lowest sum is the route. Default: by round trips."),
]

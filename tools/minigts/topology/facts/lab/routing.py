"""How hosts get routes to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.language.problems import Finding, list_names
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import LabSetting
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    routing = document.get("routing")
    if routing in ("ospf", "bgp") and drafted.switches:
        switches = list_names([switch.name for switch in drafted.switches])
        why = f"{routing} runs only on links between two hosts, and there are switches: {switches}"
        yield ("routing",), f"{why}; join the hosts with links, or write `routing: routed`"


def _title(plan: Plan) -> str:
    return f"routes by {plan.routing.upper()}" if plan.has_routers else ""


Routing: TypeAlias = Annotated[
    Annotated[
        Literal["routed", "neighbours", "ospf", "bgp"],
        choice("a routing mode", "routed", "neighbours", "ospf", "bgp"),
    ],
    LabSetting(
        elsewhere=Elsewhere(
            what="routing",
            why="no other format has it as we do",
            has=lambda plan: plan.has_routers,
            lost=False,
            words=lambda plan: f"routing: {plan.routing}",
        ),
        problems=_problems,
        title=_title,
        status=lambda plan: plan.routing,
        page="""\
optional · `routed`, `neighbours`, `ospf` or `bgp` · default: `routed` · `routing: ospf`

- `routed`: every host forwards, and has a static route to every other host's address and to every
  [segment](glossary.md#the-lab). The path with the lowest RTT (the delays of both directions together) is taken; of
  equal ones, the path with fewer hops, then the first by order in the file. Answers take the same path back. With
  [`ecmp`](#ecmp) all equal paths are taken, and [`cost`](#linkscost) replaces the RTT. All hosts must be connected, or,
  with [`groups`](#groups), the hosts of each group.
- `neighbours`: no routes at all, as in the GÉANT Testbed Service. A host reaches the far end of each of its links and
  nothing else, not even the neighbour's own address; so a neighbour's name stands for its address on the link. Only an
  overlay that forwards by itself reaches beyond the neighbours. The lab may consist of several unconnected parts.
- `ospf`, `bgp`: the routes of `routed`, but each host finds them by that protocol, and finds new ones when a link fails
  ([routing protocols](routing-protocols.md)). All links are between two hosts; a file with switches is refused.
""",
    ),
    Field(
        description="routed: static routes, every host reaches every other. neighbours: a host reaches only the hosts "
        "it shares a link with, as in GTS. ospf, bgp: as routed, by routes that the hosts find by that "
        "protocol, and again when a link fails. Default: routed."
    ),
]

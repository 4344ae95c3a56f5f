"""The program by which a host finds its routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.language.problems import Finding
from minigts.language.spec import Spec
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere, HostSetting
from minigts.topology.routing_engines import DEFAULT_ENGINE, PROTOCOLS, EngineName, why_not, written_protocol


class RoutingOfHost(Spec):
    """How a host takes part in the lab's routing protocol."""

    engine: Annotated[EngineName, choice("a routing program", "bird", "frr")] = Field(
        description="The program: bird or frr. Default: that of the lab."
    )


def _problems(value: RoutingOfHost, document: Mapping[str, Data]) -> Iterator[Finding]:
    protocol = written_protocol(document)
    if protocol is None or protocol not in PROTOCOLS:
        yield (), "the lab has no routing protocol: write `routing: ospf` or `bgp` for the lab, or take it out here"
    elif why := why_not(value.engine, protocol):
        yield (), why.partition(": write")[0] + "; take it out here, or let the lab have another protocol"


Routing: TypeAlias = Annotated[
    RoutingOfHost | None,
    HostSetting(
        field="engine",
        from_start=lambda host: host.engine != DEFAULT_ENGINE,
        problems=_problems,
        elsewhere=Elsewhere(
            what="routing",
            why="no other format has it as we do",
            has=lambda host: host.engine != DEFAULT_ENGINE,
            lost=False,
        ),
        page="""\
optional, with [`routing: ospf`, `bgp` or `isis`](#routing) · mapping of `engine` · default: as the lab ·
`routing: {engine: frr}`

The program by which this host speaks the lab's routing protocol, `bird` or `frr`. Hosts of both speak with each other
([routing protocols](routing-protocols.md#bird-and-frr)).
""",
    ),
    Field(description="How the host takes part in the lab's routing protocol: {engine: frr}. Default: as the lab."),
]

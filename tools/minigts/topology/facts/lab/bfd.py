"""Whether neighbours of a routing protocol find out by BFD that they are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding
from minigts.language.quantities import BFD_MS
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft
from minigts.topology.routing_engines import PROTOCOLS, written_protocol

MULTIPLIER = 3
"""After how many intervals without a packet a neighbour is gone; FRR's and Cisco's default, BIRD's is 5."""
_SCHEMA = {"anyOf": [{"enum": [False]}, {"type": "string", "pattern": BFD_MS.pattern, "examples": [BFD_MS.example]}]}


def _interval_ms(value: object) -> int | None:
    """The interval in ms; None for `false`."""
    return None if value in (None, False, "false") else BFD_MS.parse_whole(value)


def _problems(document: Mapping[str, Data], _: Draft) -> Iterator[Finding]:
    if document["bfd"] != "false" and written_protocol(document) not in PROTOCOLS:
        yield ("bfd",), "only a routing protocol asks for BFD: write `routing: ospf` or `bgp`, or take it out"


def _sentence(plan: Plan) -> str:
    if plan.bfd_ms is None:
        return ""
    gone_ms = MULTIPLIER * plan.bfd_ms
    return f"neighbours say by BFD every {plan.bfd_ms} ms that they are there, and count as gone after {gone_ms} ms"


Bfd: TypeAlias = Annotated[
    Annotated[int | None, BeforeValidator(_interval_ms), WithJsonSchema(_SCHEMA)],
    LabSetting(
        field="bfd_ms",
        elsewhere=Elsewhere(what="bfd", why=NOWHERE, has=lambda plan: plan.bfd_ms, lost=True),
        problems=_problems,
        sentence=_sentence,
        page="""\
optional, with `routing: ospf`, `bgp` or `isis` · time from 10 ms to 10 s, or `false` · default: `false` · `bfd: 100ms`

How often the two ends of each link tell each other by Bidirectional Forwarding Detection (RFC 5880) that they are
there. Three such times after its last packet a neighbour counts as gone, and the routing protocol is told; without BFD
its own timers decide, which are seconds ([how long it
takes](routing-protocols.md#how-long-until-the-other-way-is-found)).
""",
    ),
    Field(
        description="How often neighbours of the routing protocol tell each other by BFD that they are there; after "
        "three of these times one counts as gone. Default: false, no BFD."
    ),
]

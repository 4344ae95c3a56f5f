"""How hosts get routes to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from minigts.language.fields import choice
from minigts.language.problems import Finding, list_names
from minigts.language.quantities import Words
from minigts.language.spec import Spec
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import LabSetting
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft
from minigts.topology.routing_engines import (
    DEFAULT_ENGINE,
    ENGINES,
    PROTOCOLS,
    EngineName,
    why_not,
    written_engine,
    written_protocol,
)

_MODES = ("routed", "neighbours", "ospf", "bgp", "isis")
_MODE = Words("a routing mode", _MODES)


class RoutingChoice(Spec):
    """How hosts get their routes, and by which program."""

    protocol: Annotated[Literal["routed", "neighbours", "ospf", "bgp", "isis"], choice("a routing mode", *_MODES)] = (
        Field(description="As `routing` without a mapping.")
    )
    engine: Annotated[EngineName, choice("a routing program", *ENGINES)] = Field(
        DEFAULT_ENGINE, description="The program that speaks the protocol on each host: bird or frr. Default: bird."
    )


def _with_engine(value: object) -> object:
    """A mode alone as a mapping."""
    if isinstance(value, dict):
        if "protocol" not in value:
            raise ValueError("no protocol: write one, as in {protocol: ospf, engine: frr}")
        return value
    return {"protocol": _MODE.parse(value)}


def _schema(of_mapping: dict[str, Any]) -> None:
    """A mode alone, or the mapping."""
    of_mapping["anyOf"] = [{"enum": [*_MODES]}, {"$ref": of_mapping.pop("$ref")}]
    of_mapping["default"] = of_mapping["default"]["protocol"]


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    routing = written_protocol(document)
    engine = written_engine(document)
    if routing is None or routing not in PROTOCOLS:
        if engine is not None and routing is not None:
            yield ("routing", "engine"), "only a routing protocol has a program: write `protocol: ospf`, or take it out"
        return
    if why := why_not(engine or DEFAULT_ENGINE, routing):
        yield ("routing",) if engine is None else ("routing", "engine"), why
    if drafted.switches:
        switches = list_names([switch.name for switch in drafted.switches])
        why = f"{routing} runs only on links between two hosts, and there are switches: {switches}"
        yield ("routing",), f"{why}; join the hosts with links, or write `routing: routed`"


def _title(plan: Plan) -> str:
    return f"routes by {plan.protocol_title}{_by_programs(plan)}" if plan.has_routers else ""


def _by_programs(plan: Plan) -> str:
    """` of FRR`, or where hosts differ ` of BIRD (a, b) and FRR (c)`; empty where all have BIRD."""
    by = plan.engines
    if list(by) == [DEFAULT_ENGINE]:
        return ""
    words = [ENGINES[name].title + (f" ({', '.join(hosts)})" if len(by) > 1 else "") for name, hosts in by.items()]
    return f" of {' and '.join(words)}"


def _unreached(plan: Plan) -> str:
    """Of systems with relationships, how many do not reach each other."""
    if not plan.has_relationships:
        return ""
    every = len(plan.hosts) * (len(plan.hosts) - 1) // 2
    none = f"; of {every} pairs of hosts {every - plan.pairs} have no such way" if plan.pairs < every else ""
    return f"routes follow customers, peers and providers{none}"


def _sentence(plan: Plan) -> str:
    return "; ".join(filter(None, (_of_programs(plan), _unreached(plan))))


def _of_programs(plan: Plan) -> str:
    if not plan.has_routers or not (programs := _by_programs(plan)):
        return ""
    packages = [
        f"{each.title} is Debian's package {each.package}"
        for name, each in ENGINES.items()
        if name in plan.engines and each.package
    ]
    return f"hosts find their routes by {plan.protocol_title}{programs}; {', '.join(packages)}, which its hosts get"


Routing: TypeAlias = Annotated[
    Annotated[RoutingChoice, BeforeValidator(_with_engine), Field(json_schema_extra=_schema)],
    LabSetting(
        planned=lambda written: written.protocol,
        elsewhere=Elsewhere(
            what="routing",
            why="no other format has it as we do",
            has=lambda plan: plan.has_routers,
            lost=False,
            words=lambda plan: f"routing: {plan.routing}",
        ),
        problems=_problems,
        sentence=_sentence,
        title=_title,
        status=lambda plan: plan.routing,
        page="""\
optional · `routed`, `neighbours`, `ospf`, `bgp` or `isis`, or a mapping of `protocol` and `engine` · default: `routed` ·
`routing: ospf`

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
- `isis`: the same by IS-IS, of FRR alone: `routing: {protocol: isis, engine: frr}`.

`engine`, with `ospf`, `bgp` or `isis`, is `bird` (the default) or `frr`: the program that speaks the protocol on each
host, unless [the host](#hostsrouting) has another one, as in `routing: {protocol: ospf, engine: frr}`. BIRD 2 is in the
image. FRR is Debian's package `frr`, which its hosts get as by [`packages`](#hostspackages): the first `up` fetches it.
Both set the same costs, timers, BFD and ECMP ([the differences](routing-protocols.md#bird-and-frr)).
""",
    ),
    Field(
        description="routed: static routes, every host reaches every other. neighbours: a host reaches only the hosts "
        "it shares a link with, as in GTS. ospf, bgp, isis: as routed, by routes that the hosts find by that "
        "protocol, and again when a link fails. {protocol: ospf, engine: frr} has FRR in place of BIRD. Default: routed."
    ),
]

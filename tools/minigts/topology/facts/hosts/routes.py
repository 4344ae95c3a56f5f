"""Static routes of a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding, quote
from minigts.language.tree import Data
from minigts.topology.fields import HOST_NAME
from minigts.topology.host_setting import Elsewhere, HostSetting, Misfit, PlannedNetwork
from minigts.topology.plan.elements import MOST_ROUTES, Host, OwnRoute
from minigts.topology.routes import own_routes
from minigts.topology.routing_engines import PROTOCOLS, written_protocol


def _routes(value: object) -> dict[str, str]:
    example = "a mapping of hosts or networks to neighbours, as in {h3: h2, 10.9.0.0/16: h2}"
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{quote(value)} is no routes: write {example}")
    if len(value) > MOST_ROUTES:
        raise ValueError(f"{len(value)} routes; at most {MOST_ROUTES} are possible")
    for to, via in value.items():
        if not isinstance(to, str) or not (HOST_NAME.fullmatch(to) or _is(IPv4Network, to)):
            raise ValueError(f"{quote(to)} is no destination of a route: write a host's name or a network, {example}")
        if not isinstance(via, str) or not (HOST_NAME.fullmatch(via) or _is(IPv4Address, via)):
            raise ValueError(f"{to}: {quote(via)} is no neighbour: write its name, or its address on the link")
    return dict(value)


def _is(kind: Callable[[str], object], text: str) -> bool:
    """Whether `text` is one in canonical form."""
    try:
        return len(text) <= len("255.255.255.255/32") and "." in text and str(kind(text)) == text
    except ValueError:
        return False


def _problems(value: Mapping[str, str], document: Mapping[str, Data]) -> Iterator[Finding]:
    protocol = written_protocol(document)
    if protocol in PROTOCOLS:
        yield (), f"the hosts find their routes by {protocol}: write `routing: routed`, or take the routes out"
    if protocol == "neighbours":
        why = "`routing: neighbours` leaves hosts without routes"
        yield (), f"{why}; take its own routes out, or write `routing: routed`"
    if document.get("ipv4") == "false":
        either = "take one of the two out, or write hosts' names"
        for to, via in value.items():
            if any(word[:1].isdigit() for word in (to, via)):
                yield (to,), f"the route has an IPv4 address, and the topology says `ipv4: false`: {either}"


def _resolved(value: Mapping[str, str], host: Host, hosts: Sequence[Host]) -> tuple[object, list[Finding]]:
    own: list[OwnRoute] = []
    findings: list[Finding] = []
    for to, via in value.items():
        try:
            own.append(own_routes.find_route(hosts, host, to, via))
        except ValueError as error:
            findings.append(((to,), f"{host.name}: {error}"))
    return tuple(own), findings


def _misfits(network: PlannedNetwork) -> Iterator[Misfit]:
    if network.routing != "routed":
        for host in (each for each in network.hosts if each.own_routes):
            yield Misfit(host.name, (), f"the lab has routing {network.routing}")
        return
    found = own_routes.wrong(network.hosts, network.switches, network.links, ecmp=network.ecmp)
    yield from (Misfit(host, (to,), why) for host, to, why in found)


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    for host in (each for each in hosts if each.own_routes):
        yield f"{host.name} has routes of its own: {', '.join(route.in_words for route in host.own_routes)}"


_ROUTES = WithJsonSchema(
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "examples": ["h2", "10.20.0.2"]}}
)
Routes: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_routes), _ROUTES] | None,
    HostSetting(
        from_start=lambda host: host.own_routes,
        field="own_routes",
        problems=_problems,
        resolved=_resolved,
        misfits=_misfits,
        sentences=_sentences,
        elsewhere=Elsewhere(
            what="routes", why="no other format has them as we do", has=lambda host: host.own_routes, lost=True
        ),
        page="""\
optional, with `routing: routed` · mapping of hosts or IPv4 networks to neighbours, at most 1000 · default: the best
ways · `routes: {par: mil, 10.9.0.0/16: bra}`

Static routes of this host. A host's name stands for its own address. A network stands for every host and segment in it,
and for itself, whether anything in the lab has it or not. The neighbour is a host on one of this host's segments: its
name, or its address there where the two share several. Of several routes the one with the longest prefix holds. Any of
them holds instead of the [best ways](#routing) and of [`ecmp`](#ecmp). The host's own segments stay where they are; so
`0.0.0.0/0` sends everything else to one neighbour.

The neighbour sends on by its own routes, and answers come back by the other hosts' own: so ways there and back may
differ. `minigts plan`, `explain`, round trips, ceilings, [`expect`](#expect) and the certificate follow them. The IPv6
route of a host or a segment takes the same way; a network outside of the lab has none.

These are errors: a neighbour that is none, an unknown host, two routes to the same network, and a route by which
packets would go in a ring. A link or a host by which such a route leads cannot be removed from a lab that is up.
[The decision on routes](decisions/routes.md) has the reasons.
""",
    ),
    Field(
        description="Static routes of the host: by a host's name or an IPv4 network the neighbour by which packets to "
        "it go. Default: the best ways."
    ),
]

"""Static routes of a host."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import shown
from minigts.topology.fields import HOST_NAME, MOST_ROUTES
from minigts.topology.host_setting import Elsewhere, HostSetting


def _routes(value: object) -> dict[str, str]:
    example = "a mapping of hosts or networks to neighbours, as in {h3: h2, 10.9.0.0/16: h2}"
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{shown(value)} is no routes: write {example}")
    if len(value) > MOST_ROUTES:
        raise ValueError(f"{len(value)} routes; at most {MOST_ROUTES} are possible")
    for to, via in value.items():
        if not isinstance(to, str) or not (HOST_NAME.fullmatch(to) or _is(IPv4Network, to)):
            raise ValueError(f"{shown(to)} is no destination of a route: write a host's name or a network, {example}")
        if not isinstance(via, str) or not (HOST_NAME.fullmatch(via) or _is(IPv4Address, via)):
            raise ValueError(f"{to}: {shown(via)} is no neighbour: write its name, or its address on the link")
    return dict(value)


def _is(kind: Callable[[str], object], text: str) -> bool:
    """Whether `text` is one in canonical form."""
    try:
        return len(text) <= len("255.255.255.255/32") and "." in text and str(kind(text)) == text
    except ValueError:
        return False


_ROUTES = WithJsonSchema(
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "examples": ["h2", "10.20.0.2"]}}
)
Routes: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_routes), _ROUTES] | None,
    HostSetting(
        from_start=lambda host: host.own_routes,
        elsewhere=Elsewhere(
            what="routes", why="no other format has them as we do", has=lambda host: host.own_routes, lost=True
        ),
    ),
    Field(
        description="Static routes of the host: by a host's name or an IPv4 network the neighbour by which packets to "
        "it go. Default: the best ways."
    ),
]

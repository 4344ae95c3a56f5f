"""The number of a host's autonomous system in BGP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding
from minigts.language.quantities import whole_number
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere, HostSetting, Misfit, PlannedNetwork
from minigts.topology.plan.elements import Host
from minigts.topology.routing_engines import FIRST_ASN, HIGHEST_ASN, written_protocol

_RESERVED = {23456: "RFC 6793", 65535: "RFC 7300"}


def number_of(host: Host) -> int:
    """The number of the host's system: its own, or that of its place in the file."""
    return FIRST_ASN + host.index if host.asn is None else host.asn


def _number(value: object) -> int:
    number = whole_number(value, "the number of an autonomous system", 1, HIGHEST_ASN)
    if number in _RESERVED:
        raise ValueError(f"{number} is reserved ({_RESERVED[number]}): write another number, as in 64512")
    return number


def _problems(_: int, document: Mapping[str, Data]) -> Iterator[Finding]:
    if written_protocol(document) != "bgp":
        yield (), "only BGP has autonomous systems: write `routing: bgp` for the lab, or take it out"


def _misfits(network: PlannedNetwork) -> Iterator[Misfit]:
    owners: dict[int, Host] = {}
    for host in network.hosts if any(each.asn is not None for each in network.hosts) else ():
        if (other := owners.setdefault(number_of(host), host)) is not host:
            yield Misfit(host.name, (), f"{other.name} is autonomous system {number_of(host)} already")


Asn: TypeAlias = Annotated[
    Annotated[int, BeforeValidator(_number), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": HIGHEST_ASN})]
    | None,
    HostSetting(
        from_start=lambda host: host.asn is not None,
        problems=_problems,
        resolved=lambda value, *_: (value, ()),
        misfits=_misfits,
        elsewhere=Elsewhere(
            what="asn", why="no other format has it", has=lambda host: host.asn is not None, lost=False
        ),
        page="""\
optional, with [`routing: bgp`](#routing) · whole number, 1 to 4294967294 · default: 64512 for the first host of the file,
64513 for the second, … · `asn: 174`

The number of the host's autonomous system in BGP (RFC 6793), each once in a lab. No route is chosen by it.
""",
    ),
    Field(description="The number of its autonomous system, with routing bgp. Default: 64512 for the first host, …"),
]

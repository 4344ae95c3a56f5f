"""Whether hosts and links have IPv4 addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.language.problems import Finding
from minigts.language.tree import Data
from minigts.topology import overlay_names
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.read.declared import Draft
from minigts.topology.routes import segments

_EITHER = "and the topology says `ipv4: false`: take one of the two out"


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    """What of a file with `ipv4: false` needs IPv4."""
    if document["ipv4"] != "false":
        return
    if document.get("ipv6") in (None, "false"):
        yield ("ipv4",), "hosts would have no addresses: add `ipv6: true`, or take `ipv4: false` out"
    if document.get("subnets") is not None:
        yield ("subnets",), f"it is a block of IPv4, {_EITHER}"
    if (why := overlay_names.why_unfit(str(document.get("overlay")), ("ipv6",), "the topology")) is not None:
        yield ("overlay",), why
    yield from _addresses(drafted)


def _addresses(drafted: Draft) -> Iterator[Finding]:
    """Addresses of IPv4 that the file gives."""
    for host in drafted.hosts:
        for to, via in (host.spec.routes or {}).items():
            if any(word[:1].isdigit() for word in (to, via)):
                why = f"the route has an IPv4 address, {_EITHER}, or write hosts' names"
                yield (*host.place_of("routes"), to), why
    for switch in drafted.switches:
        if switch.controller not in (None, segments.BUILTIN):
            yield (*switch.where, "controller"), f"a switch asks a controller elsewhere by IPv4, {_EITHER}"
    for link in drafted.links:
        for key, there in (("subnet", link.subnet), ("addresses", link.addresses)):
            if there:
                yield link.where, f"`{key}:` is of IPv4, {_EITHER}"


Ipv4: TypeAlias = Annotated[
    Annotated[bool, *truth("hosts and links have IPv4 addresses")],
    LabSetting(
        elsewhere=Elsewhere(what="ipv4: false", why=NOWHERE, has=lambda plan: not plan.ipv4, lost=True),
        problems=_problems,
        status=lambda plan: plan.ipv4,
    ),
    Field(description="false: hosts and links have IPv6 addresses alone, which needs `ipv6:`. Default: true."),
]

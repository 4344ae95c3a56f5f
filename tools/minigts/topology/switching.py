"""What must hold where switches are: no rings, one way in for each host, one subnet and MTU, a controller in reach."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from minigts.language.problems import Finding, path_of, shown
from minigts.topology.draft import Draft, DraftSwitch
from minigts.topology.segments import Segment, segments

BUILTIN = "builtin"
BUILTIN_ADDRESS = "127.0.0.1"
CONTROLLER_PORT = 6653
"""The port of OpenFlow controllers (IANA)."""


def of(drafted: Draft) -> list[Segment]:
    """The segments of a file, in order."""
    return segments([link.ends for link in drafted.links], {switch.name for switch in drafted.switches})


def check(drafted: Draft) -> Iterator[Finding]:
    """Everything wrong with the segments that have switches."""
    parts = [part for part in of(drafted) if part.switches]
    for part in parts:
        yield from _agree(drafted, part)
        twice = sorted({name for name in part.hosts if part.hosts.count(name) > 1})
        for name in twice:
            again = [index for index in part.links if name in drafted.links[index].ends][1]
            hint = "a host has one link to a segment: the switches would carry its frames in a ring"
            yield drafted.links[again].where, f"host {name!r} is on this segment already; {hint}"
        links = [drafted.links[index] for index in part.links]
        inner = [link for link in links if {*link.ends} <= {*part.switches} and link.ends[0] != link.ends[1]]
        if len(inner) >= len(part.switches):
            names = ", ".join(part.switches)
            yield inner[-1].where, f"the links between {names} form a ring, in which frames would circle; take one out"
    for switch in drafted.switches:
        own = next((part for part in parts if switch.name in part.switches), None)
        if own is None and drafted.all_links:
            yield switch.where, f"no link ends on switch {switch.name!r}"
        yield from _controller(drafted, switch, own)


def _agree(drafted: Draft, part: Segment) -> Iterator[Finding]:
    """What all links of a segment share, may be given with any of them."""
    first = drafted.links[part.links[0]]
    lead = next((drafted.links[index] for index in part.links if drafted.links[index].subnet), first)
    for link in (drafted.links[index] for index in part.links[1:]):
        if link.subnet is not None and link.subnet != lead.subnet:
            there = f"{lead.subnet} of {path_of(lead.where)}"
            yield (*link.where, "subnet"), f"{link.subnet} differs from {there}, on the same segment"
        if link.mtu != first.mtu:
            there = f"the MTU {first.mtu} of {path_of(first.where)}"
            yield link.where, f"MTU {link.mtu} differs from {there}; a switch does not fragment"


def _controller(drafted: Draft, switch: DraftSwitch, part: Segment | None) -> Iterator[Finding]:
    where = (*switch.where, "controller")
    if switch.controller is None or switch.controller == BUILTIN:
        return
    name, port = split(switch.controller)
    if not 0 < port < 65536:
        yield where, f"port {port} is out of range: from 1 to 65535"
    if is_address(name):
        return
    if name[0].isdigit():
        yield where, f"{shown(name)} is not an IPv4 address"
    elif name == BUILTIN:
        yield where, f"the built-in controller has port {CONTROLLER_PORT}: write builtin alone"
    elif drafted.all_hosts and name not in {host.name for host in drafted.hosts}:
        yield where, f"no host {name!r} for a controller; write builtin, a host's name or an IPv4 address"
    elif drafted.all_links and name not in (part.hosts if part else ()):
        yield where, f"host {name!r} is not on the segment of {switch.name}, from which the switch reaches it"


def split(written: str) -> tuple[str, int]:
    """`h1:6633` as ("h1", 6633)."""
    name, _, port = written.partition(":")
    return name, int(port or CONTROLLER_PORT)


def is_address(name: str) -> bool:
    try:
        IPv4Address(name)
    except ValueError:
        return False
    return True

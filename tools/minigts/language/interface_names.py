"""Names of links' ends: a port's own, eth2, by its number, and others, which Linux keeps beside it (ip-link(8),
`altname`). Pure; standard library only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Protocol

LONGEST = 127
"""Of an alternative name, in bytes (ALTIFNAMSIZ in Linux's uapi/linux/if.h is 128)."""
HINT = f"an interface's name: at most {LONGEST} letters, digits, dots, hyphens, underscores; a letter or digit first"
FIRST_PORT, LAST_PORT = 0, 99_999
PORT = re.compile(r"eth(0|[1-9][0-9]{0,4})", re.ASCII)
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_OF_PORTS = re.compile(r"(?:ifb-)?eth[0-9]+(?:\..*)?", re.ASCII | re.DOTALL)
_OF_OVERLAYS = (
    *("br-overlay", "br-vxlan", "br0", "cni0", "docker0", "docker_gwbridge", "flannel.1", "flannel.ipip", "gateway"),
    *("ovs-system", "underlay", "vxlan-ebpf", "vxlan.calico", "vxlan0", "weave", "wg0"),
)
_OF_LINUX = (
    "all",
    "default",
    "dummy0",
    "erspan0",
    "gre0",
    "gretap0",
    "ip6_vti0",
    "ip6gre0",
    "ip6tnl0",
    "ip_vti0",
    "lo",
    "sit0",
    "tunl0",
)


class Joins(Protocol):
    """A link, as a file has it."""

    @property
    def ends(self) -> tuple[str, str]: ...

    @property
    def interfaces(self) -> tuple[tuple[str, str], ...]:
        """The names that the file gives to the interfaces of the ends, by the machines' names."""
        ...


def port_name(number: int) -> str:
    """The name of a machine's port with that number."""
    return f"eth{number}"


def number_of(name: str) -> int | None:
    """The number of the port of that name; None for another name."""
    found = PORT.fullmatch(name)
    return None if found is None else int(found[1])


def free_ports(taken: Iterable[str]) -> Iterator[str]:
    """The names of ports that are not `taken`, from eth1 on."""
    others = {*taken}
    return (name for number in count(1) if (name := port_name(number)) not in others)


def end_names(links: Iterable[Joins]) -> list[tuple[str, str]]:
    """The names of both ends of each link: that of the file where it is a port's, else the lowest port of the machine
    that is free, in the order of the links, from eth1 on."""
    given = [(link.ends, {end: name for end, name in link.interfaces if PORT.fullmatch(name)}) for link in links]
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for _, names in given:
        for end, name in names.items():
            taken[end].add(name)
    free = {end: free_ports(taken[end]) for ends, _ in given for end in ends}
    return [
        (names.get(first) or next(free[first]), names.get(second) or next(free[second]))
        for (first, second), names in given
    ]


def why_not(name: str) -> str | None:
    """Why no end of a link can have this name beside its own; None where one can."""
    if not _NAME.fullmatch(name):
        return f"it is not {HINT}"
    if _OF_PORTS.fullmatch(name):
        return f"names such as eth2 are those of a host's ports, from {port_name(FIRST_PORT)} to {port_name(LAST_PORT)}"
    if name in (*_OF_OVERLAYS, *_OF_LINUX):
        return "Linux, minigts or an overlay has an interface of that name"
    return None

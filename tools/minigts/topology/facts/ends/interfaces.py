"""Names of a link's ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from minigts.language import interface_names
from minigts.language.problems import Finding, path_of, quote
from minigts.topology.end_setting import BY_END, EndSetting, Unfit, strange_ends, texts_of_ends
from minigts.topology.read.declared import DraftLink


def _interface(text: str) -> str:
    if interface_names.number_of(text) is None and (why := interface_names.why_not(text)) is not None:
        raise Unfit(why)
    return text


def _interfaces(value: object) -> dict[str, str]:
    return texts_of_ends(value, "interface name", "eth2 or uplink", _interface, "interfaces' names")


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    """Names of links' ends, each once on its machine."""
    owners: dict[tuple[str, str], str] = {}
    for link in links:
        yield from strange_ends(link, "interfaces", dict(link.interfaces))
        for end, name in link.interfaces:
            if end in link.ends and (end, name) in owners:
                why = f"{quote(name)} is the name of {end}'s end of {owners[end, name]} already"
                yield (*link.where, "interfaces", end), why
            owners.setdefault((end, name), path_of(link.where))


Interfaces: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_interfaces), BY_END] | None,
    EndSetting(
        problems=_problems,
        page="""\
optional · mapping of ends to names · default: the lowest free port from eth1 on · `interfaces: {ams: eth3, bra: uplink}`

**A port's number**, `eth0` to `eth99999`, at one or both ends. Without it a machine's ports have the lowest numbers
that its other links do not take, from eth1 on, in the order of the links: of three links, one with `eth2`, the other
two are eth1 and eth3. A port is eth0 only where a file says so; `vagrant` refuses it, since minigts reaches a virtual
machine by its eth0. Only the name follows from it, and of two equal links between switches the one that the [spanning
tree](#switchesspanning_tree) takes; addresses and MACs follow from the order of the links alone. In a lab that is up
ports keep their numbers when other links come and go: `remove` leaves a gap, which the next link fills.

**A name of your own** stands beside eth1, eth2, …, which stay the names of record. Linux calls it an alternative name
(`ip-link(8)`, `altname`). The name has up to 127 letters, digits, dots, hyphens and underscores, a letter or digit
first, and is unique on its host. It cannot be the name of an interface of Linux or an overlay (`lo`, `docker0`).

The name works wherever a program asks the kernel for the interface: `ip`, `tc`, `ethtool`, `bridge`,
`tcpdump -i uplink`, `ping -I uplink`, `traceroute -i uplink`, `iperf3 --bind-dev uplink`. It does not work where a name
is compared with the name of record or is part of a path: `iptables` and the `iifname` of `nft` take `uplink` and never
match it, the `iif` of `nft` refuses it, and `/sys/class/net/` and `net.ipv4.conf.` have `eth1` alone. `minigts plan`
shows both names; `check` and `explain` say when one is gone.
""",
    ),
    Field(
        description="Names for the interfaces of the link's ends, by their names: eth2 is the port of that number, and "
        "uplink stands beside it. Default: the lowest free number from eth1 on, in the order of the links."
    ),
]

"""IPv4 addresses of a link's ends. Their segment is judged in `read.whole_file`, which knows the subnets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from minigts.language.problems import Finding
from minigts.topology.end_setting import BY_END, EndSetting, strange_ends, texts_of_ends
from minigts.topology.read.declared import DraftLink


def _addresses(value: object) -> dict[str, str]:
    return texts_of_ends(value, "IPv4 address", "192.168.7.20", lambda text: str(IPv4Address(text)))


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    for link in links:
        yield from strange_ends(link, "addresses", dict(link.addresses))
        for name, address in link.addresses if link.vlans else ():
            if name in link.ends:
                why = f"a trunk is on several segments: give {address} with a link of one VLAN"
                yield (*link.where, "addresses", name), why


Addresses: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_addresses), BY_END] | None,
    EndSetting(
        problems=_problems,
        page="""\
optional, with the segment's `subnet` · mapping of ends to IPv4 addresses · default: the lowest free ones, in the order
of the links · `addresses: {ams: 192.168.7.20, bra: 192.168.7.30}`

The addresses of one or both ends, as labs of other tools have them. With switches each host's address stands with its
own link, and the `subnet` with any link of the segment. [IPv6](#ipv6) addresses have the same numbers in their /64:
192.168.7.20 of 192.168.7.0/24 corresponds to `fd6d:6967:7473::14`. A trunk has no such key.
""",
    ),
    Field(
        description="IPv4 addresses of the link's ends, by their names, in the segment's `subnet`. Default: the lowest "
        "free ones, in the order of the links."
    ),
]

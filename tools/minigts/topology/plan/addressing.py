"""The addresses of a lab, of each version of IP that it has. Pure.

Hosts and switches of a plan have the addresses of IPv4. Where a lab has IPv6, each of them stands for one of IPv6, too,
and in a lab without IPv4 for nothing else. Whoever says or sets an address asks the plan for it (`Plan.address_of`,
`Plan.addressings`), and need not know which versions there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from minigts.topology.frames import Family
from minigts.topology.plan.elements import Host, HostPort, OnVlan, Route, Switch
from minigts.topology.routes.ipv6 import SEGMENT_PREFIX, Ipv6Route, Numbering

AnyRoute: TypeAlias = "Route | Ipv6Route"


@dataclass(frozen=True)
class Addressing:
    """The addresses of one version of IP, each by that which the plan stores."""

    family: Family
    numbering: Numbering | None = None
    """None for IPv4, whose addresses are those of the plan."""

    @property
    def version(self) -> int:
        return 4 if self.numbering is None else 6

    @property
    def bits(self) -> int:
        """The length of an address."""
        return 32 if self.numbering is None else 128

    def address(self, stored: str) -> str:
        """Raises KeyError where no machine has it."""
        return stored if self.numbering is None else self.numbering.address(stored)

    def network(self, stored: str) -> str:
        """The network of a segment. Raises KeyError."""
        return stored if self.numbering is None else self.numbering.network(stored)

    def own(self, host: Host) -> str:
        """A host's own address with its length, as on its loopback. Raises KeyError."""
        return f"{self.address(host.address)}/{self.bits}"

    def segment_address(self, end: HostPort | Switch | OnVlan) -> str:
        """The address of a link's end, or of a switch, with the length of its segment's. Raises KeyError."""
        return f"{self.address(end.address)}/{end.prefix if self.numbering is None else SEGMENT_PREFIX}"

    def routes(self, routes: Iterable[Route]) -> tuple[AnyRoute, ...]:
        """These routes in their order; of IPv6 without those to a network that is no host's and no segment's."""
        numbering = self.numbering
        if numbering is None:
            return tuple(routes)
        return tuple(numbering.route(each) for each in routes if numbering.knows(each.to))

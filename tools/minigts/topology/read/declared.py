"""What a file declares, with shorthands expanded and defaults filled in: hosts, switches and links, each with where it
was written. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from minigts.language.problems import Location
from minigts.topology.containers import ContainerSpec
from minigts.topology.host_settings import HostSpec
from minigts.topology.link_settings import Shaping
from minigts.topology.read.per_direction import BothWays
from minigts.topology.routes.spanning_tree import DEFAULT_PRIORITY, Protocol
from minigts.topology.routes.valley_free import Relationship

DEFAULT_MTU = 1500


@dataclass(frozen=True)
class DraftHost:
    where: Location
    name: str
    spec: HostSpec
    """Its settings, with all defaults of the file."""
    containers: tuple[ContainerSpec, ...] = ()
    """Its own, and those of its Compose file."""

    @property
    def location(self) -> str | None:
        return self.spec.location

    def place_of(self, key: str) -> Location:
        """Where the host's own settings have that key, if they do."""
        return (*self.where, key) if self.where[:1] == ("hosts",) else self.where


@dataclass(frozen=True)
class DraftSwitch:
    where: Location
    name: str
    location: str | None
    memory_mb: int
    controller: str | None
    """As written: `builtin`, or a host's name or an address, with or without a port."""
    spanning_tree: Protocol | None = None
    priority: int = DEFAULT_PRIORITY


class OwnTable(NamedTuple):
    """A file with a distribution of delays."""

    source: str
    scaled: bool
    """Whether the topology says the standard deviation."""


@dataclass(frozen=True)
class DraftLink:
    """One link. `name` and `subnet` are None when the file leaves them to the plan."""

    where: Location
    ends: tuple[str, str]
    name: str | None
    subnet: str | None
    ways: BothWays[Shaping]
    """The shaping as declared; the plan adds the derived values (`plan.directions.derive_shaping`)."""
    mtu: int
    own_delay: bool = False
    """Whether the file has a delay or an rtt for this link, if only as a default."""
    delay_from: Literal["file", "measured", "distance", "same site", "no site"] | None = None
    """Where the delay comes from, in a topology that says `delays: sites` (`sites`)."""
    addresses: tuple[tuple[str, str], ...] = ()
    """Of its ends, by name, where the file says them."""
    macs: tuple[tuple[str, str], ...] = ()
    """As `addresses`."""
    interfaces: tuple[tuple[str, str], ...] = ()
    """The names of its ends' interfaces, as `addresses`."""
    vlan: int | None = None
    """The VLAN that it carries untagged."""
    vlans: tuple[int, ...] | None = None
    """The VLANs that it carries tagged, in order; None when the file does not name them."""
    costs: BothWays[int] | None = None
    """What it costs in each direction, where the file says so."""
    relationship: Relationship | None = None
    """What its second end is to its first."""
    tables: BothWays[OwnTable | None] | None = None
    """The files with the distributions of its delays, which are still to be read (`read.delay_tables`)."""
    whole: bool = True
    """Whether all its settings in the file were accepted."""

    @property
    def rtt_ms(self) -> float:
        return round(sum(way.delay_ms for way in self.ways), 6)


@dataclass(frozen=True)
class Draft:
    hosts: tuple[DraftHost, ...]
    links: tuple[DraftLink, ...]
    all_hosts: bool
    """Whether every host that the file declares is here."""
    all_links: bool
    """Whether every link that the file declares is here."""
    switches: tuple[DraftSwitch, ...] = ()

    @property
    def machines(self) -> tuple[DraftHost | DraftSwitch, ...]:
        """Hosts, then switches."""
        return (*self.hosts, *self.switches)

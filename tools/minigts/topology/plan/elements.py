"""The elements of a plan: machines with their ports, links, and what follows from them, routes and paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Interface
from itertools import chain
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from minigts.language import interface_names
from minigts.topology.containers import PlannedContainer
from minigts.topology.fields import (
    MOST_HOSTS,
    Address,
    AltName,
    ByteNs,
    CallNs,
    Controller,
    Cpus,
    CpuShare,
    FrameNs,
    GoodputMbit,
    HostName,
    Index,
    Interface,
    Location,
    Mac,
    MemoryMb,
    Mtu,
    Name,
    Network,
    OneWayMs,
    PathDelayMs,
    PathRttMs,
    Percent,
    Prefix,
    RateMbit,
    RttMs,
    VlanNumber,
)
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.fact import DESCRIBED, PARTS, Fact
from minigts.topology.routes.spanning_tree import (
    DEFAULT_PRIORITY,
    HIGHEST_COST,
    HIGHEST_PRIORITY,
    PRIORITY_STEP,
    Protocol,
)
from minigts.topology.routes.valley_free import Relationship
from minigts.topology.routing_engines import DEFAULT_ENGINE, HIGHEST_ASN, EngineName
from minigts.topology.software import Software
from minigts.topology.sysctls import MOST_SETTINGS, Sysctl

CACHED: Literal["cached"] = "cached"
"""The kind of disk that loses what was not flushed when its power is cut."""
MOST_ROUTES = 1000
"""The most routes that a file may give a host."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


_UNLESS_NONE = Field(exclude_if=lambda value: value is None)
_INTERFACES = Fact(key="interfaces", stays="hosts name their interfaces as they boot")
_ADDRESSES = Fact(key="addresses", stays="hosts keep their addresses")
_SUBNETS = Fact(stays="hosts keep their addresses")
_VLANS = Fact(key="vlan", stays="hosts and switches get their VLANs as they boot")
_COSTS = Fact(key="cost", stays="hosts get their routes as they boot")


class Port(Frozen):
    """A machine's end of a link."""

    name: Annotated[Interface, _INTERFACES]
    """The interface inside the machine, by its number: eth1, eth2, …, and eth0 where a file says so."""
    mac: Annotated[Mac, _ADDRESSES]
    mtu: Annotated[Mtu, Fact(stays="hosts get a link's MTU as they boot")]
    link: Annotated[Name, PARTS]
    peer_host: Annotated[HostName, PARTS]
    """The machine at the link's other end: a host or a switch."""
    outgoing: Annotated[Shaping, PARTS]
    """The shaping of frames from this port to the peer."""
    incoming: Annotated[Shaping, PARTS]
    """The shaping of frames from the peer to this port: the peer's `outgoing`."""
    altname: Annotated[AltName | None, _UNLESS_NONE, _INTERFACES] = None
    """The name that its file gives it, which Linux keeps beside `name`. None, which is not stored, without one."""

    @property
    def number(self) -> int:
        """The number in its name."""
        found = interface_names.number_of(self.name.partition(".")[0])
        assert found is not None, "an interface of a link has a number"
        return found


P = TypeVar("P", bound=Port)


class OnVlan(Frozen):
    """A machine's address in a VLAN."""

    vlan: VlanNumber
    address: Address
    prefix: Prefix


class Tagged(OnVlan):
    """A host's interface in one VLAN of a trunk: eth1.10."""

    peer_address: Address


class HostPort(Port):
    """A host's end of a link."""

    address: Annotated[Address, _ADDRESSES]
    """IPv4 address of this end, without prefix length; of a trunk the one in its first VLAN."""
    prefix: Annotated[Prefix, _ADDRESSES]
    peer_address: Annotated[Address, _ADDRESSES]
    """The address at the link's other end; for a switch, the switch's own address."""
    tagged: Annotated[tuple[Tagged, ...], Field(exclude_if=lambda each: not each), _ADDRESSES] = ()
    """The interfaces of a trunk, by VLAN. Empty, which is not stored, where frames are untagged."""

    @property
    def vlan(self) -> int | None:
        """The VLAN tag of frames that it sends; None means untagged. Only for ports from `on_segments`."""
        return self.tagged[0].vlan if self.tagged else None

    @property
    def subnet(self) -> str:
        """The segment's subnet in CIDR form."""
        return str(IPv4Interface(f"{self.address}/{self.prefix}").network)

    @property
    def on_segments(self) -> tuple[HostPort, ...]:
        """Itself, or a trunk's VLANs one by one, as interfaces with their names and addresses: eth1.10, eth1.20."""
        return tuple(
            self.model_copy(
                update={**dict(each), "name": f"{self.name}.{each.vlan}", "altname": None, "tagged": (each,)}
            )
            for each in self.tagged
        ) or (self,)


class Route(Frozen):
    """A route, set or to be found by a protocol: `to` in CIDR form, `via` a neighbour's address on a shared segment."""

    to: Network
    via: Address
    source: Address
    """The address that packets made on this host carry when they take this route: the host's own address."""
    also: Annotated[tuple[Address, ...], Field(exclude_if=lambda each: not each)] = ()
    """Further neighbours over which flows are spread, in a lab with `ecmp`. An empty list is not stored."""


class OwnRoute(Frozen):
    """A route that a file gives a host, instead of the best ways (`routes`)."""

    to: HostName | Network
    """A host, for its own address; or a network, for all hosts and segments in it, and itself."""
    via: HostName
    """The neighbour by which packets go."""
    link: Name
    """The host's link to the segment that it shares with the neighbour."""
    vlan: Annotated[VlanNumber | None, _UNLESS_NONE] = None
    """The VLAN of that segment. None, which is not stored, without VLANs."""

    @property
    def in_words(self) -> str:
        return f"{self.to} by {self.via}"


class Machine(Frozen):
    """A host or switch, which a provider starts, with its ports in the order of their numbers."""

    name: Annotated[HostName, PARTS]
    index: Annotated[Index, PARTS]
    """Position in the topology file among its own kind, from 0; removed hosts leave gaps."""
    location: Annotated[Location | None, DESCRIBED]
    cpus: Annotated[Cpus | CpuShare, Fact(stays="a host gets its processors as it boots")]
    """Processors. Below 1 the host gets no more than that share of one processor, in real time only."""
    memory_mb: Annotated[MemoryMb, Fact(stays="a host gets its memory as it boots")]
    ports: Annotated[tuple[Port, ...], PARTS]
    kernel: Annotated[
        str,
        Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,39})?$", exclude_if=lambda name: not name),
        Fact(stays="a host gets its kernel as it boots"),
    ] = ""
    """The name of its kernel. Empty, which is not stored, for the standard one."""


class Processor(Frozen):
    """Time that frames on any of a host's ports, one after the other, and system calls take of its processor."""

    frame_ns: FrameNs = 0
    byte_ns: ByteNs = 0.0
    """Time for each byte of a frame, Ethernet header included."""
    call_ns: CallNs = 0
    """Time for each system call."""

    @property
    def takes_frames(self) -> bool:
        return bool(self.frame_ns or self.byte_ns)


class Host(Machine):
    role: Annotated[Literal["host"], PARTS] = "host"
    disk: Annotated[
        Literal["", "cached"], Field(exclude_if=lambda disk: not disk), Fact(stays="a host gets its disk as it boots")
    ] = ""
    """Cached: in virtual time only, it loses what was not flushed when its power is cut. Empty, which is not stored:
    what is written is there for good."""
    light: Annotated[
        bool, Field(exclude_if=lambda light: not light), Fact(stays="a host gets its kernel as it boots")
    ] = False
    """Whether it shares a kernel with other light hosts, in virtual time only. False is not stored."""
    processor: Annotated[
        Processor | None, Fact(stays="the lab's clock gets a host's modelled processor as it comes up")
    ] = None
    """The modelled processor, in virtual time only. With None frames and calls take no time."""
    software: Annotated[
        Software | None,
        Fact(
            stays="a host gets its image, packages, files and environment as it boots, and runs its commands then",
        ),
    ] = None
    """The user's software on the host, if any."""
    address: Annotated[Address, Fact(stays="hosts keep their addresses")]
    """The host's own address, a /32 on its loopback: the same on whichever segment a packet arrives."""
    ports: Annotated[tuple[HostPort, ...], PARTS]
    containers: Annotated[
        tuple[PlannedContainer, ...], Fact(stays="containers are started as the overlay is joined")
    ] = ()
    """The user's own containers, in the lab's overlay."""
    sysctls: Annotated[
        tuple[Sysctl, ...],
        Field(max_length=MOST_SETTINGS, exclude_if=lambda each: not each),
        Fact(stays="a host's kernel is set as it boots"),
    ] = ()
    """Kernel settings that differ from the baseline, by name. An empty list is not stored."""
    own_routes: Annotated[
        tuple[OwnRoute, ...],
        Field(max_length=MOST_ROUTES, exclude_if=lambda each: not each),
        Fact(stays="hosts get their routes as they boot"),
    ] = ()
    """Routes that its file gives it. An empty list is not stored."""
    engine: Annotated[
        EngineName,
        Field(exclude_if=lambda engine: engine == DEFAULT_ENGINE),
        Fact(key="routing", stays="a host starts its routing program as it boots"),
    ] = DEFAULT_ENGINE
    """The program that speaks the lab's routing protocol, if it has one. The default is not stored."""
    asn: Annotated[
        int | None,
        Field(ge=1, le=HIGHEST_ASN, exclude_if=lambda number: number is None),
        Fact(stays="a host starts its routing program as it boots"),
    ] = None
    """The number of its autonomous system in BGP, where its file gives one. None is not stored."""
    gateway: Annotated[
        bool, Field(exclude_if=lambda gateway: not gateway), Fact(stays="a host gets its way out as it boots")
    ] = False
    """Whether it has a way out of the lab, in real time only (`gateway`). False is not stored."""

    @property
    def on_segments(self) -> tuple[HostPort, ...]:
        """Its ports with their addresses, a trunk once for each VLAN."""
        return tuple(each for port in self.ports for each in port.on_segments)


class SpanningTree(Frozen):
    """A switch's part in the spanning tree, by which switches that form a ring block links."""

    protocol: Protocol
    priority: Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY, multiple_of=PRIORITY_STEP)] = DEFAULT_PRIORITY


class Switch(Machine):
    """Open vSwitch on a machine of its own: it bridges its ports."""

    role: Annotated[Literal["switch"], PARTS] = "switch"
    address: Annotated[Address, Fact(stays="hosts keep their addresses")]
    """The switch's own address on its segment."""
    prefix: Annotated[Prefix, Fact(stays="hosts keep their addresses")]
    ports: Annotated[tuple[Port, ...], Field(min_length=1), PARTS]
    controller: Annotated[Controller | None, Fact(stays="a switch gets its controller as it boots")]
    """Where its OpenFlow controller listens, `ADDRESS:PORT`; on 127.0.0.1 it is the built-in one. With None the switch
    learns by itself."""
    vlans: Annotated[
        tuple[OnVlan, ...], Field(exclude_if=lambda each: not each), Fact(stays="a switch gets its VLANs as it boots")
    ] = ()
    """The VLANs of its links, each with the switch's address there; the first one is `address`. An empty list is not
    stored."""
    spanning_tree: Annotated[
        SpanningTree | None,
        _UNLESS_NONE,
        Fact(stays="a switch gets its spanning tree as it boots", key="spanning_tree or priority"),
    ] = None
    """None, which is not stored, where it forwards on all ports."""

    @property
    def mac(self) -> str:
        """The address by which other switches know it: the lowest of its ports'."""
        return min(port.mac.lower() for port in self.ports)


class Direction(Frozen):
    """The figures of a link or a path in one direction. A rate of None means no limit."""

    delay_ms: PathDelayMs
    rate_mbit: RateMbit | None
    loss_percent: Percent
    """Chance that a packet does not arrive; see `Link`."""
    tcp_ceiling_mbit: GoodputMbit | None
    """Highest TCP goodput. None, too, where the other direction is too slow for its acknowledgements."""
    tcp_least_mbit: Annotated[GoodputMbit | None, _UNLESS_NONE] = None
    """Lowest TCP goodput of a path whose hosts' buffers may be the limit (`topology.tcp`). None, which is not stored,
    where the links are the limit, and for a link."""

    @property
    def unacknowledged(self) -> bool:
        """Whether acknowledgements may limit TCP, and not this direction's own rate."""
        return self.rate_mbit is not None and self.tcp_ceiling_mbit is None


class Vlan(Frozen):
    """A VLAN that a trunk carries."""

    number: VlanNumber
    subnet: Network


class Link(Frozen):
    """A link between two ends. `name` is unique in the plan (`ams-bra`). Links that meet in a switch, and carry the
    same VLAN if any, are one segment with one subnet.

    Rate, loss and ceiling are those from the first end to the second, and back unless `back` differs.
    """

    name: Annotated[Name, PARTS]
    index: Annotated[Index, PARTS]
    ends: Annotated[tuple[HostName, HostName], PARTS]
    subnet: Annotated[Network, _SUBNETS]
    """The segment's subnet; for a trunk, that of its first VLAN."""
    vlan: Annotated[VlanNumber | None, Field(exclude_if=lambda vlan: vlan is None), _VLANS] = None
    """The VLAN of its untagged frames. None, which is not stored, without VLANs and on a trunk."""
    vlans: Annotated[tuple[Vlan, ...], Field(exclude_if=lambda vlans: not vlans), _VLANS] = ()
    """The VLANs of its tagged frames (IEEE 802.1Q). An empty list is not stored."""
    rtt_ms: Annotated[RttMs, PARTS]
    """The sum of both directions' delays."""
    rate_mbit: Annotated[RateMbit | None, PARTS]
    loss_percent: Annotated[Percent, PARTS]
    """Chance that a packet does not arrive, in one direction: lost, or corrupted and therefore dropped. What the file
    says of either alone is in the ports' `Shaping`."""
    tcp_ceiling_mbit: Annotated[GoodputMbit | None, PARTS] = None
    """Highest TCP goodput: the rate times payload over frame (1448/1514 at MTU 1500). None: see `Direction`."""
    back: Annotated[Direction | None, PARTS] = None
    """The direction from the second end to the first, where it differs."""
    delay_from: Annotated[
        Literal["file", "measured", "distance", "same site", "no site"] | None,
        Field(exclude_if=lambda source: source is None),
        PARTS,
    ] = None
    """Where the delay comes from (`sites`). None, which is not stored, without `delays: sites`."""
    cost: Annotated[int | None, Field(ge=1, le=65535, exclude_if=lambda cost: cost is None), _COSTS] = None
    """The link's cost by which routes are chosen, from the first end to the second, and back unless `cost_back` is
    another. None, which is not stored, where round trips decide."""
    cost_back: Annotated[int | None, Field(ge=1, le=65535, exclude_if=lambda cost: cost is None), _COSTS] = None
    relationship: Annotated[
        Relationship | None,
        _UNLESS_NONE,
        Fact(stays="hosts get the policies of their routing program as they boot"),
    ] = None
    """What its second end is to its first, by which routes are chosen and announced. None, which is not stored, where
    costs or round trips decide."""
    tree_cost: Annotated[
        int | None,
        Field(ge=1, le=HIGHEST_COST, exclude_if=lambda cost: cost is None),
        Fact(key="rate", stays="switches get the costs of the spanning tree, which follow from it, as they boot"),
    ] = None
    """What either of its ports costs in the spanning tree, by its declared rate. None, which is not stored, but between
    two switches that have one."""

    @property
    def costs(self) -> tuple[int, int] | None:
        """From the first end to the second, and back."""
        return None if self.cost is None else (self.cost, self.cost if self.cost_back is None else self.cost_back)

    def cost_from(self, end: str) -> int | None:
        """The cost of sending over it from one of its ends."""
        return None if self.costs is None else self.costs[0 if self.ends[0] == end else 1]

    @property
    def segments(self) -> tuple[tuple[int | None, str], ...]:
        """The segments of which it is part, each by VLAN, None without VLANs, and subnet."""
        return tuple((vlan.number, vlan.subnet) for vlan in self.vlans) or ((self.vlan, self.subnet),)

    @property
    def vlans_in_words(self) -> str:
        """`10`, or of a trunk `10, 20 tagged`."""
        return vlans_in_words([vlan for vlan, _ in self.segments if vlan is not None], tagged=bool(self.vlans))

    @property
    def ways(self) -> tuple[Direction, Direction]:
        """From the first end to the second, and back."""
        return _ways(self)

    @property
    def lossy(self) -> bool:
        """Whether it loses packets in either direction."""
        return any(way.loss_percent for way in self.ways)


class Path(Frozen):
    """What the plan predicts between two hosts, from `source` to `target`.

    Rate, loss and ceiling are those of this direction, and back unless `back` differs.
    """

    source: str
    target: str
    links: tuple[str, ...]
    """The names of the links on the path, in order; its length is the number of hops. Of several ways the first."""
    reachable: bool
    """Whether the underlay routes packets over it: always, but in mode neighbours only between neighbours."""
    rtt_ms: PathRttMs
    """Sum of the links' RTT; of several ways the least."""
    rate_mbit: RateMbit | None
    """Lowest rate on the path."""
    tcp_ceiling_mbit: GoodputMbit | None
    """Highest TCP goodput over the underlay: the lowest rate times payload over frame, with the lowest MTU, and no more
    than the hosts' buffers carry over the round trip. None: see `Direction`."""
    tcp_least_mbit: Annotated[GoodputMbit | None, _UNLESS_NONE] = None
    """Lowest TCP goodput; see `Direction`."""
    loss_percent: Percent
    """Chance that a packet does not arrive, in one direction; see `Link`."""
    back: Direction | None = None
    """The direction from the target to the source, where it differs."""
    rtt_most_ms: Annotated[PathRttMs | None, _UNLESS_NONE] = None
    """The highest RTT of several ways. None, which is not stored, where all have the same."""
    ways_there: Annotated[tuple[tuple[str, ...], ...], Field(exclude_if=lambda ways: not ways)] = ()
    """The ways from source to target, each by its links, where there are several, or the way back is another. At most
    64 are listed. Figures are then those of all ways: the lowest rate, the highest loss, a range of TCP."""
    ways_back: Annotated[tuple[tuple[str, ...], ...], Field(exclude_if=lambda ways: not ways)] = ()
    """The same from target to source."""
    also_over: Annotated[tuple[str, ...], Field(exclude_if=lambda links: not links)] = ()
    """The links of ways that are not listed."""

    @property
    def hops(self) -> int:
        return len(self.links)

    @property
    def crossed(self) -> frozenset[str]:
        """The links of all ways, there and back."""
        return frozenset((*self.links, *chain.from_iterable((*self.ways_there, *self.ways_back)), *self.also_over))

    @property
    def each_there(self) -> tuple[tuple[str, ...], ...]:
        """Every listed way from source to target, by its links."""
        return self.ways_there or (self.links,)

    @property
    def each_back(self) -> tuple[tuple[str, ...], ...]:
        """Every listed way from target to source, by its links."""
        return self.ways_back or (self.links[::-1],)

    @property
    def ways(self) -> tuple[Direction, Direction]:
        """From source to target, and back."""
        return _ways(self)

    @property
    def lossy(self) -> bool:
        """Whether it loses packets in either direction."""
        return any(way.loss_percent for way in self.ways)

    @property
    def turned(self) -> Path:
        """The path from target to source."""
        there, back = self.ways
        return Path(
            source=self.target,
            target=self.source,
            links=self.each_back[0],
            reachable=self.reachable,
            rtt_ms=self.rtt_ms,
            rate_mbit=back.rate_mbit,
            tcp_ceiling_mbit=back.tcp_ceiling_mbit,
            tcp_least_mbit=back.tcp_least_mbit,
            loss_percent=back.loss_percent,
            back=None if self.back is None else there,
            rtt_most_ms=self.rtt_most_ms,
            ways_there=self.ways_back,
            ways_back=self.ways_there,
            also_over=self.also_over,
        )


class Tolerances(Frozen):
    """How far a lab may be from its plan: the file's `tolerances:`."""

    rtt_ms: OneWayMs = 0.2
    rtt_percent: Percent = 1.0
    """The share of the declared round-trip time that is added to `rtt_ms`."""
    rate_percent: Percent = 2.0
    loss_points: Percent = 0.1


class Kubernetes(Frozen):
    """How a cluster of Kubernetes is set up, where an overlay is one: the file's `kubernetes:`."""

    proxy: Literal["iptables", "nftables", "ipvs"] = "iptables"
    """The mode of kube-proxy."""
    dns: bool = False
    """Whether CoreDNS runs, so that pods find Services by their names."""
    policies: bool = False
    """Whether NetworkPolicy objects are enforced, by kube-router."""


class Group(Frozen):
    """Hosts with an overlay of their own, which the first of them leads."""

    name: Name
    hosts: Annotated[tuple[HostName, ...], Field(min_length=2, max_length=MOST_HOSTS)]


def sorted_ports(ports: Iterable[P]) -> tuple[P, ...]:
    """A machine's ports, by their numbers."""
    return tuple(sorted(ports, key=lambda port: port.number))


def vlans_in_words(vlans: Sequence[int], *, tagged: bool) -> str:
    """`10`, or of a trunk `10, 20 tagged`."""
    return ", ".join(map(str, vlans)) + (" tagged" if tagged else "")


def _ways(of: Link | Path) -> tuple[Direction, Direction]:
    back_ms = of.rtt_ms / 2 if of.back is None else of.back.delay_ms
    there = Direction(
        delay_ms=round(of.rtt_ms - back_ms, 6),
        rate_mbit=of.rate_mbit,
        loss_percent=of.loss_percent,
        tcp_ceiling_mbit=of.tcp_ceiling_mbit,
        tcp_least_mbit=of.tcp_least_mbit if isinstance(of, Path) else None,
    )
    return there, of.back or there

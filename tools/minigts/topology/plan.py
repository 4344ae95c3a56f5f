"""The plan: everything a provider, the Vagrantfile, an experiment or the report needs to know of a lab.

A plan is pure data. `minigts plan --json FILE` prints it; the same file gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minigts.formats.limits import MOST_NOTES
from minigts.topology import ipv6 as v6
from minigts.topology.containers import Container
from minigts.topology.fields import (
    MOST_HOSTS,
    MOST_LINKS,
    Address,
    BurstPackets,
    ByteNs,
    CallNs,
    Controller,
    Cpus,
    CpuShare,
    Description,
    Expectation,
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
    Note,
    OneWayMs,
    Packets,
    PathDelayMs,
    PathRttMs,
    Percent,
    Prefix,
    QueueBytes,
    RateMbit,
    RttMs,
    Seed,
    VlanNumber,
)
from minigts.topology.schedule import MOST_MOMENTS, Moment
from minigts.topology.software import Software
from minigts.topology.time import Time


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_UNLESS_ZERO = Field(exclude_if=lambda amount: not amount)


class Shaping(_Frozen):
    """One direction of one link, as declared. None means: not limited, not added."""

    delay_ms: OneWayMs = 0.0
    jitter_ms: OneWayMs = 0.0
    loss_percent: Percent = 0.0
    rate_mbit: RateMbit | None = None
    queue_bytes: QueueBytes | None = None
    """The queue in front of the rate limit, in bytes; None exactly when rate_mbit is None."""
    delay_packets: Packets = 1000
    """How many packets the delay holds at the most, sized so that the delay itself never drops."""
    seed: Seed | None = None
    """Of the random numbers behind what chance decides; None when it decides nothing."""
    burst_packets: Annotated[BurstPackets, _UNLESS_ZERO] = 0.0
    """How many packets in a row are lost, in the mean. 0, and then not written, as below: each is lost on its own."""
    reorder_percent: Annotated[Percent, _UNLESS_ZERO] = 0.0
    """Share of packets that take no delay, and so overtake others."""
    duplicate_percent: Annotated[Percent, _UNLESS_ZERO] = 0.0
    corrupt_percent: Annotated[Percent, _UNLESS_ZERO] = 0.0
    """Share of packets in which one bit is turned over."""
    slot_ms: Annotated[OneWayMs, _UNLESS_ZERO] = 0.0
    """What comes within so long arrives together."""

    @property
    def bursts(self) -> tuple[float, float] | None:
        """Of losses in bursts, after Gilbert (1960): the chance that one begins with a packet, and that it ends with
        one. In it all is lost. None: each packet is lost on its own.
        """
        lost = self.loss_percent / 100
        return (lost / (self.burst_packets * (1 - lost)), 1 / self.burst_packets) if self.in_bursts else None

    @property
    def in_bursts(self) -> bool:
        return self.burst_packets > 0 and 0 < self.loss_percent < 100

    @property
    def by_chance(self) -> bool:
        """Whether chance decides anything of it, so that it needs a seed."""
        return bool(self.jitter_ms or self.spoils)

    @property
    def spoils(self) -> bool:
        """Whether some packets do not come once, in order and whole."""
        return any((self.loss_percent, self.reorder_percent, self.duplicate_percent, self.corrupt_percent))

    @property
    def in_order(self) -> bool:
        """Whether packets come once, one by one and in order, but for those that are lost and for jitter: only then has
        the link one round trip, and TCP its ceiling."""
        return not (self.reorder_percent or self.duplicate_percent or self.slot_ms)


class End(_Frozen):
    """A machine's end of a link. `name` is the interface inside the machine (eth1, eth2, …; eth0 is never a link)."""

    name: Interface
    mac: Mac
    mtu: Mtu
    link: Name
    peer_host: HostName
    """The machine at the link's other end: a host or a switch."""
    outgoing: Shaping
    """What frames leaving by this port meet on their way to the peer."""
    incoming: Shaping
    """What frames arriving by this port have met: the peer's `outgoing`."""


class OnVlan(_Frozen):
    """A machine's address in a VLAN."""

    vlan: VlanNumber
    address: Address
    prefix: Prefix


class Tagged(OnVlan):
    """What a host has of one VLAN of a trunk, on an interface of its own: eth1.10."""

    peer_address: Address


class Port(End):
    """A host's end of a link."""

    address: Address
    """IPv4 address of this end, without prefix length; of a trunk the one in its first VLAN."""
    prefix: Prefix
    peer_address: Address
    """The address at the link's other end; a switch's is the one that it answers on itself."""
    tagged: Annotated[tuple[Tagged, ...], Field(exclude_if=lambda each: not each)] = ()
    """Of a trunk, by VLAN. Empty, and then not written: frames say no VLAN."""

    @property
    def vlan(self) -> int | None:
        """What frames say that it sends; None: none. Of `on_segments` only."""
        return self.tagged[0].vlan if self.tagged else None

    @property
    def subnet(self) -> str:
        """Of the segment, in CIDR form."""
        return str(IPv4Interface(f"{self.address}/{self.prefix}").network)

    @property
    def on_segments(self) -> tuple[Port, ...]:
        """Itself, or a trunk's VLANs one by one, as interfaces with their names and addresses: eth1.10, eth1.20."""
        return tuple(
            self.model_copy(update={**dict(each), "name": f"{self.name}.{each.vlan}", "tagged": (each,)})
            for each in self.tagged
        ) or (self,)


class Route(_Frozen):
    """A route, set or to be found by a protocol: `to` in CIDR form, `via` a neighbour's address on a shared segment."""

    to: Network
    via: Address
    source: Address
    """The address that packets made on this host carry when they take this route: the host's own address."""


class Machine(_Frozen):
    """What a provider starts, of either role, with its ends of links in order."""

    name: HostName
    index: Index
    """Position in the topology file among its own kind, from 0; a lab that hosts were taken out of has gaps."""
    location: Location | None
    cpus: Cpus | CpuShare
    """Below 1: the host gets no more than that share of one processor, in real time only."""
    memory_mb: MemoryMb
    ports: tuple[End, ...]


class Processor(_Frozen):
    """What takes a host's processor: frames that pass any of its ports, in or out, one after the other, and calls."""

    frame_ns: FrameNs = 0
    byte_ns: ByteNs = 0.0
    """Of a byte of the frame, Ethernet header counted."""
    call_ns: CallNs = 0
    """Of a system call."""

    @property
    def takes_frames(self) -> bool:
        return bool(self.frame_ns or self.byte_ns)


class Host(Machine):
    role: Literal["host"] = "host"
    processor: Processor | None = None
    """Modelled, in virtual time only. None: frames take nothing."""
    software: Software | None = None
    """What it has of the user's own; None: nothing."""
    address: Address
    """The host's own address, a /32 on its loopback: stable, whichever segment a packet comes by."""
    ports: tuple[Port, ...]
    routes: tuple[Route, ...]
    containers: tuple[Container, ...] = ()
    """The user's own, in the lab's overlay."""
    gateway: Annotated[bool, Field(exclude_if=lambda gateway: not gateway)] = False
    """Whether it has a way out of the lab, in real time only (`gateway`). False, and then not written: none."""

    @property
    def on_segments(self) -> tuple[Port, ...]:
        """Its ports with their addresses, a trunk once for each VLAN."""
        return tuple(each for port in self.ports for each in port.on_segments)


class Switch(Machine):
    """Open vSwitch on a machine of its own: it bridges its ports."""

    role: Literal["switch"] = "switch"
    address: Address
    """On its segment, for whoever asks the switch itself."""
    prefix: Prefix
    ports: Annotated[tuple[End, ...], Field(min_length=1)]
    controller: Controller | None
    """None: it learns by itself. Else where its OpenFlow controller listens, `ADDRESS:PORT`; on 127.0.0.1 it is the
    built-in one."""
    vlans: Annotated[tuple[OnVlan, ...], Field(exclude_if=lambda each: not each)] = ()
    """Those of its links, each with its address there, of which the first is `address`. Empty, and then not written:
    there are none."""


class Direction(_Frozen):
    """What a link or a path is in one direction. None means: not limited."""

    delay_ms: PathDelayMs
    rate_mbit: RateMbit | None
    loss_percent: Percent
    tcp_ceiling_mbit: GoodputMbit | None
    """None, too, where the other direction is too thin for the acknowledgements of as much."""

    @property
    def unacknowledged(self) -> bool:
        """Whether acknowledgements may limit TCP, and not this direction's own rate."""
        return self.rate_mbit is not None and self.tcp_ceiling_mbit is None


class Vlan(_Frozen):
    """One that a trunk carries."""

    number: VlanNumber
    subnet: Network


class Link(_Frozen):
    """Two ends. `name` is unique in the plan (`ams-bra`). Links that meet in a switch are one segment: one subnet.
    With VLANs those that carry the same one are.

    Rate, loss and ceiling are those from the first end to the second, and of the way back unless `back` says otherwise.
    """

    name: Name
    index: Index
    ends: tuple[HostName, HostName]
    subnet: Network
    """Of a trunk that of its first VLAN."""
    vlan: Annotated[VlanNumber | None, Field(exclude_if=lambda vlan: vlan is None)] = None
    """The one that its frames are in without saying so. None, and then not written: there are none, or `vlans`."""
    vlans: Annotated[tuple[Vlan, ...], Field(exclude_if=lambda vlans: not vlans)] = ()
    """Those that its frames say (IEEE 802.1Q). Empty, and then not written: frames say none."""
    rtt_ms: RttMs
    """Both directions' delay."""
    rate_mbit: RateMbit | None
    loss_percent: Percent
    """Chance to lose a packet, in one direction."""
    tcp_ceiling_mbit: GoodputMbit | None = None
    """Highest TCP goodput: the rate times payload over frame (1448/1514 at MTU 1500). None: see `Direction`."""
    back: Direction | None = None
    """From the second end to the first, where that is otherwise."""
    delay_from: Annotated[
        Literal["file", "measured", "distance", "same site", "no site"] | None,
        Field(exclude_if=lambda source: source is None),
    ] = None
    """Where the delay comes from (`sites`). None, and then not written: nothing but what is declared makes delays."""
    cost: Annotated[int | None, Field(ge=1, le=65535, exclude_if=lambda cost: cost is None)] = None
    """What a routing protocol takes the link to cost, either way. None, and then not written: there is no protocol."""

    @property
    def segments(self) -> tuple[tuple[int | None, str], ...]:
        """Those that it is part of: their VLANs, None where there are none, and subnets."""
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


class Path(_Frozen):
    """What the plan predicts between two hosts, from `source` to `target`.

    Rate, loss and ceiling are those of this direction, and of the way back unless `back` says otherwise.
    """

    source: str
    target: str
    links: tuple[str, ...]
    """The names of the links on the way, in order; its length is the number of hops."""
    reachable: bool
    """Whether the underlay routes it: always, but in mode neighbours only for neighbours."""
    rtt_ms: PathRttMs
    """Sum of the links' RTT."""
    rate_mbit: RateMbit | None
    """Lowest rate on the way."""
    tcp_ceiling_mbit: GoodputMbit | None
    """Highest TCP goodput over the underlay: the lowest rate times payload over frame, with the lowest MTU. None: see
    `Direction`."""
    loss_percent: Percent
    """Chance to lose a packet on the way, in one direction."""
    back: Direction | None = None
    """From the target to the source, over the same links, where that is otherwise."""

    @property
    def hops(self) -> int:
        return len(self.links)

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
        """The same links from target to source."""
        there, back = self.ways
        return Path(
            source=self.target,
            target=self.source,
            links=self.links[::-1],
            reachable=self.reachable,
            rtt_ms=self.rtt_ms,
            rate_mbit=back.rate_mbit,
            tcp_ceiling_mbit=back.tcp_ceiling_mbit,
            loss_percent=back.loss_percent,
            back=None if self.back is None else there,
        )


class Tolerances(_Frozen):
    """How far a lab may be from its plan: the file's `tolerances:`."""

    rtt_ms: OneWayMs = 0.2
    rtt_percent: Percent = 1.0
    """Of the declared round-trip time, added to `rtt_ms`."""
    rate_percent: Percent = 2.0
    loss_points: Percent = 0.1


class Group(_Frozen):
    """Hosts over which an overlay is laid by itself; the first of them leads."""

    name: Name
    hosts: Annotated[tuple[HostName, ...], Field(min_length=2, max_length=MOST_HOSTS)]


class Plan(_Frozen):
    version: Literal[1] = 1
    name: Name
    description: Description
    routing: Literal["routed", "neighbours", "ospf", "bgp"]
    time: Time = "real"
    overlay: Name
    groups: Annotated[tuple[Group, ...], Field(max_length=MOST_HOSTS)] = ()
    """None: an overlay is laid over all hosts. A host is in one group at the most."""
    hosts: Annotated[tuple[Host, ...], Field(min_length=1, max_length=MOST_HOSTS)]
    switches: Annotated[tuple[Switch, ...], Field(max_length=MOST_HOSTS)] = ()
    links: Annotated[tuple[Link, ...], Field(max_length=MOST_LINKS)]
    paths: Annotated[tuple[Path, ...], Field(max_length=MOST_HOSTS * MOST_HOSTS)]
    """One for each pair of hosts that are connected, in file order of source, then target, which is behind it there."""
    expect: tuple[Expectation, ...] = ()
    """The file's `expect:` entries, as written."""
    tolerances: Tolerances = Tolerances()
    ipv6: Annotated[v6.Ipv6 | None, Field(exclude_if=lambda beside: beside is None)] = None
    """What each host and each end has beside its IPv4 addresses. None, and then not written: IPv6 is off on links."""
    schedule: Annotated[tuple[Moment, ...], Field(max_length=MOST_MOMENTS, exclude_if=lambda each: not each)] = ()
    """What its links do over time, when that is played. None, and then not written: nothing."""
    notes: Annotated[tuple[Note, ...], Field(max_length=MOST_NOTES + 1, exclude_if=lambda notes: not notes)] = ()
    """What its file, in another language, says and nobody honours. None, and then not written: nothing."""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if (problem := next(_contradictions(self), None)) is not None:
            raise ValueError(problem)
        return self

    def host(self, name: str) -> Host:
        """The host called `name`. Raises KeyError."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(name)

    def ipv6_of(self, name: str) -> v6.Host | None:
        """What that host has beside its IPv4 addresses; None for a switch, and in a lab without IPv6."""
        hosts = () if self.ipv6 is None else self.ipv6.hosts
        return next((host for host in hosts if host.name == name), None)

    @property
    def machines(self) -> tuple[Host | Switch, ...]:
        """Everything that runs: the hosts, then the switches."""
        return (*self.hosts, *self.switches)

    def machine(self, name: str) -> Host | Switch:
        """The host or switch called `name`. Raises KeyError."""
        return next((switch for switch in self.switches if switch.name == name), None) or self.host(name)

    @property
    def is_routed(self) -> bool:
        """Whether each host has a route to every other, by whatever means."""
        return self.routing != "neighbours"

    @property
    def has_routers(self) -> bool:
        """Whether the hosts find their routes themselves, by a protocol: those that the plan says."""
        return self.routing in ("ospf", "bgp")

    @property
    def limited(self) -> tuple[Host, ...]:
        """The hosts that get a share of a processor."""
        return tuple(host for host in self.hosts if host.cpus < 1)

    @property
    def ways_out(self) -> tuple[Host, ...]:
        """The hosts by which this machine's networks can be reached."""
        return tuple(host for host in self.hosts if host.gateway)

    def joins_hosts(self, link: Link) -> bool:
        """Whether both ends are hosts."""
        return not {switch.name for switch in self.switches} & {*link.ends}

    def asks_controller(self, path: Path) -> bool:
        """Whether a switch on the way does what an OpenFlow controller says."""
        told = [switch for switch in self.switches if switch.controller is not None]
        return any(port.link in path.links for switch in told for port in switch.ports)

    def far_address(self, link: Link, end: int = 1) -> str:
        """The address on `link` of its second end, as its first end reaches it; or of `end` 0, as the second does."""
        far = self.machine(link.ends[end])
        if isinstance(far, Switch):
            vlan, _ = link.segments[0]
            return next((each.address for each in far.vlans if each.vlan == vlan), far.address)
        return next(port.address for port in far.ports if port.link == link.name)

    def address_over(self, path: Path) -> str:
        """Where the path's target answers: by its own address where routes lead there, else on the shared segment."""
        if self.is_routed:
            return self.host(path.target).address
        near = self.neighbours(self.host(path.source))
        return next(far.address for port, host, far in near if host.name == path.target and port.link == path.links[0])

    def ends_on(self, path: Path) -> list[End]:
        """Both ends of each link on the way, as often as it lies there: before and behind a host that routes between
        the VLANs of its one link it is the same."""
        ends = ((port, path.links.count(port.link)) for machine in self.machines for port in machine.ports)
        return [port for port, times in ends for _ in range(times)]

    def in_order(self, path: Path) -> bool:
        """Whether every link on the way has packets come once, one by one and in order, as far as chance lets them."""
        return all(end.outgoing.in_order for end in self.ends_on(path))

    def neighbours(self, host: Host) -> Iterator[tuple[Port, Host, Port]]:
        """Every other host on a segment of `host`: by which port it is reached, the host, its port there."""
        subnets: dict[tuple[str, int | None], str] = {(link.name, None): link.subnet for link in self.links}
        subnets |= {(link.name, vlan.number): vlan.subnet for link in self.links for vlan in link.vlans}
        others = [(other, far) for other in self.hosts if other != host for far in other.on_segments]
        for port in host.on_segments:
            for other, far in others:
                if subnets[far.link, far.vlan] == subnets[port.link, port.vlan]:
                    yield port, other, far

    def group_of(self, host: str) -> Group | None:
        """The group that a host is in."""
        return next((group for group in self.groups if host in group.hosts), None)

    def path(self, source: str, target: str) -> Path:
        """The path from one host to another; the way back takes the same links. Raises KeyError."""
        for path in self.paths:
            if {path.source, path.target} == {source, target}:
                return path if path.source == source else path.turned
        raise KeyError(f"{source}-{target}")

    def directions(self, link: Link) -> tuple[Shaping, Shaping]:
        """All that is declared of a link: from its first end to its second, and back."""
        there, back = (
            next(port.outgoing for port in self.machine(end).ports if port.link == link.name) for end in link.ends
        )
        return there, back


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
    )
    return there, of.back or there


def ipv6_beside(hosts: Sequence[Host], links: Sequence[Link], prefix: str) -> v6.Ipv6:
    """The IPv6 addresses and routes, from that block, beside those of IPv4. Raises KeyError where a route is astray."""
    subnets = [subnet for link in links for _, subnet in link.segments]
    members = [(port.subnet, port.address) for host in hosts for port in host.on_segments]
    numbering = v6.Numbering(prefix, [host.address for host in hosts], subnets, members)

    def beside(host: Host) -> v6.Host:
        ports = (
            v6.Port(
                name=port.name,
                address=numbering.address(port.address),
                peer_address=numbering.address_if_any(port.peer_address),
            )
            for port in host.on_segments
        )
        routes = (
            v6.Route(
                to=numbering.network(route.to), via=numbering.address(route.via), source=numbering.address(route.source)
            )
            for route in host.routes
        )
        return v6.Host(
            name=host.name, address=numbering.address(host.address), ports=tuple(ports), routes=tuple(routes)
        )

    return v6.Ipv6(
        prefix=prefix,
        hosts=tuple(map(beside, hosts)),
        links=tuple(v6.Segment(link=link.name, subnet=numbering.network(link.subnet)) for link in links),
    )


def to_json(plan: Plan) -> str:
    """`plan` as the JSON document that `minigts plan --json` prints; the same plan gives the same bytes."""
    return plan.model_dump_json(indent=2) + "\n"


def _contradictions(plan: Plan) -> Iterator[str]:
    """What names something that the plan does not have, or has twice, or elsewhere."""
    machines = {machine.name: machine for machine in plan.machines}
    links = {link.name: link for link in plan.links}
    if len(plan.machines) > MOST_HOSTS:
        yield f"{len(plan.machines)} hosts and switches; at most {MOST_HOSTS} are possible"
    yield from _doubles(plan)
    yield from _untimely(plan)
    for kind, entries in (("hosts", plan.hosts), ("switches", plan.switches), ("links", plan.links)):
        indices = [each.index for each in entries]
        if indices != sorted({*indices}):
            yield f"{kind}: indices do not ascend"
    for link in plan.links:
        for end in link.ends:
            if end not in machines:
                yield f"link {link.name}: no host or switch {end!r}"
        if link.ends[0] == link.ends[1]:
            yield f"link {link.name}: joins {link.ends[0]} to itself"
    ends = {(link.name, end): link.ends[1 - number] for link in plan.links for number, end in enumerate(link.ends)}
    for machine in plan.machines:
        yield from _astray(machine, ends, links)
    for name, end in ends.keys() - {(port.link, machine.name) for machine in plan.machines for port in machine.ports}:
        yield f"link {name}: {end} has no port on it"
    yield from _leading_nowhere(plan, {host.name for host in plan.hosts}, links)
    yield from _members_astray(plan, {host.name for host in plan.hosts})
    yield from _other_ipv6(plan)


def _members_astray(plan: Plan, hosts: Set[str]) -> Iterator[str]:
    for group in plan.groups:
        yield from (f"group {group.name}: no host {name!r}" for name in group.hosts if name not in hosts)


def _other_ipv6(plan: Plan) -> Iterator[str]:
    if plan.ipv6 is None:
        return
    try:
        same = plan.ipv6 == ipv6_beside(plan.hosts, plan.links, plan.ipv6.prefix)
    except (KeyError, ValueError):
        same = False
    if not same:
        yield f"ipv6: not what stands beside its IPv4 addresses and routes in {plan.ipv6.prefix}"


def _untimely(plan: Plan) -> Iterator[str]:
    for host in plan.hosts:
        if host.processor is not None and plan.time != "virtual":
            yield f"{host.name}: a modelled processor is of virtual time, and the plan's is {plan.time}"
        if host.cpus < 1 and plan.time != "real":
            yield f"{host.name}: a share of a processor is of real time, and the plan's is {plan.time}"
        if host.gateway and plan.time != "real":
            yield f"{host.name}: a way out is of real time, and the plan's is {plan.time}"


def _doubles(plan: Plan) -> Iterator[str]:
    ports = [(machine, port) for machine in plan.machines for port in machine.ports]
    own = [host.address for host in plan.hosts]
    own += [each.address for switch in plan.switches for each in switch.vlans or (switch,)]
    unique: dict[str, list[str]] = {
        "name": [machine.name for machine in plan.machines],
        "link": [link.name for link in plan.links],
        "MAC": [port.mac for _, port in ports],
        "port": [f"{port.name} of {machine.name}" for machine, port in ports],
        "end": [f"{machine.name} of {port.link}" for machine, port in ports],
        "address": own + [port.address for host in plan.hosts for port in host.on_segments],
        "group": [group.name for group in plan.groups],
        "member": [name for group in plan.groups for name in group.hosts],
        "path": ["-".join(sorted((path.source, path.target))) for path in plan.paths],
    }
    for kind, words in unique.items():
        yield from (f"{kind} {word} appears twice" for word, count in Counter(words).items() if count > 1)


def _astray(machine: Host | Switch, ends: Mapping[tuple[str, str], str], links: Mapping[str, Link]) -> Iterator[str]:
    """Ports that belong to no link of the machine's, and addresses outside their segment."""
    for port in machine.ports:
        if (port.link, machine.name) not in ends:
            yield f"{machine.name}: {port.name}: no link {port.link!r} ends here"
        elif port.peer_host != ends[port.link, machine.name]:
            yield f"{machine.name}: {port.name}: {port.peer_host!r} is not at the other end of {port.link}"
        elif not isinstance(port, Port):
            continue
        elif [each.vlan for each in port.tagged] != [vlan.number for vlan in links[port.link].vlans]:
            yield f"{machine.name}: {port.name}: its VLANs are not those of {port.link}"
        else:
            for own, (_, subnet) in zip(port.on_segments, links[port.link].segments, strict=True):
                if not _lies_in(own.address, own.prefix, subnet):
                    yield f"{machine.name}: {own.name}: {own.address}/{own.prefix} is no address in {subnet}"
            first = port.on_segments[0]
            if (port.address, port.prefix, port.peer_address) != (first.address, first.prefix, first.peer_address):
                yield f"{machine.name}: {port.name}: {port.address} is not its address in its first VLAN"
    if isinstance(machine, Switch):
        yield from _switch_astray(machine, links)


def _switch_astray(switch: Switch, links: Mapping[str, Link]) -> Iterator[str]:
    segments = [segment for port in switch.ports if port.link in links for segment in links[port.link].segments]
    if [each.vlan for each in switch.vlans] != sorted({vlan for vlan, _ in segments if vlan is not None}):
        yield f"{switch.name}: its VLANs are not those of its links"
    own: tuple[tuple[int | None, Switch | OnVlan], ...] = tuple((each.vlan, each) for each in switch.vlans)
    for vlan, each in own or ((None, switch),):
        if not any(_lies_in(each.address, each.prefix, subnet) for number, subnet in segments if number == vlan):
            yield f"{switch.name}: {each.address}/{each.prefix} is no address on its segment"
    if switch.vlans and (switch.address, switch.prefix) != (switch.vlans[0].address, switch.vlans[0].prefix):
        yield f"{switch.name}: {switch.address} is not its address in its first VLAN"


def _lies_in(address: str, prefix: int, subnet: str) -> bool:
    network = IPv4Network(subnet)
    return prefix == network.prefixlen and IPv4Address(address) in network


def _leading_nowhere(plan: Plan, hosts: Set[str], links: Mapping[str, Link]) -> Iterator[str]:
    """Paths that are no walk from one host to another."""
    ends_of: dict[str, tuple[str, ...]] = {name: link.ends for name, link in links.items()}
    for path in plan.paths:
        here = path.source
        for name in path.links:
            ends = ends_of.get(name, ())
            if here not in ends:
                yield f"path {path.source}-{path.target}: link {name!r} does not go on from {here}"
                break
            here = ends[1] if ends[0] == here else ends[0]
        if not path.links or here != path.target or not {path.source, path.target} <= hosts:
            yield f"path {path.source}-{path.target}: its links do not lead from host to host"

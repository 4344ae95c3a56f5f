"""The plan: everything a provider, the Vagrantfile, an experiment or the report needs to know of a lab.

A plan is pure data. `minigts plan FILE` prints it as JSON; the same file gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shaping(_Frozen):
    """One direction of one link, as declared. None means: not limited, not added."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rate_mbit: float | None = None
    queue_bytes: int | None = None
    """The queue in front of the rate limit, in bytes; None exactly when rate_mbit is None."""
    delay_packets: int = 1000
    """How many packets the delay holds at the most, sized so that the delay itself never drops."""
    seed: int | None = None
    """Of the kernel's random numbers for loss and jitter; None when there is neither."""


class End(_Frozen):
    """A machine's end of a link. `name` is the interface inside the machine (eth1, eth2, …; eth0 is never a link)."""

    name: str
    mac: str
    mtu: int
    link: str
    peer_host: str
    """The machine at the link's other end: a host or a switch."""
    outgoing: Shaping
    """What frames leaving by this port meet on their way to the peer."""
    incoming: Shaping
    """What frames arriving by this port have met: the peer's `outgoing`."""


class Port(End):
    """A host's end of a link."""

    address: str
    """IPv4 address of this end, without prefix length."""
    prefix: int
    peer_address: str
    """The address at the link's other end; a switch's is the one that it answers on itself."""


class Route(_Frozen):
    """A static route: `to` in CIDR form, `via` a neighbour's address on one of the host's own segments."""

    to: str
    via: str
    source: str
    """The address that packets made on this host carry when they take this route: the host's own address."""


class Machine(_Frozen):
    """What a provider starts, of either role, with its ends of links in order."""

    name: str
    index: int
    """Position in the topology file among its own kind, from 0."""
    location: str | None
    cpus: int
    memory_mb: int
    ports: tuple[End, ...]


class Host(Machine):
    role: Literal["host"] = "host"
    address: str
    """The host's own address, a /32 on its loopback: stable, whichever segment a packet comes by."""
    ports: tuple[Port, ...]
    routes: tuple[Route, ...]


class Switch(Machine):
    """Open vSwitch on a machine of its own: it bridges its ports."""

    role: Literal["switch"] = "switch"
    address: str
    """On its segment, for whoever asks the switch itself."""
    prefix: int
    controller: str | None
    """None: it learns by itself. Else where its OpenFlow controller listens, `ADDRESS:PORT`; on 127.0.0.1 it is the
    built-in one."""


class Link(_Frozen):
    """Two ends. `name` is unique in the plan (`ams-bra`). Links that meet in a switch are one segment: one subnet."""

    name: str
    index: int
    ends: tuple[str, str]
    subnet: str
    rtt_ms: float
    rate_mbit: float | None
    loss_percent: float
    """Chance to lose a packet, in one direction."""
    tcp_ceiling_mbit: float | None = None
    """Highest TCP goodput: the rate times payload over frame (1448/1514 at MTU 1500)."""


class Path(_Frozen):
    """What the plan predicts between two hosts (`source` before `target` in the file)."""

    source: str
    target: str
    links: tuple[str, ...]
    """The links on the way, in order; its length is the number of hops."""
    reachable: bool
    """Whether the underlay routes it: always in mode routed, only for neighbours in mode neighbours."""
    rtt_ms: float
    """Sum of the links' RTT."""
    rate_mbit: float | None
    """Lowest rate on the way."""
    tcp_ceiling_mbit: float | None
    """Highest TCP goodput over the underlay: the lowest rate times payload over frame, with the lowest MTU."""
    loss_percent: float
    """Chance to lose a packet on the way, in one direction."""

    @property
    def hops(self) -> int:
        return len(self.links)


class Tolerances(_Frozen):
    """How far a lab may be from its plan: the file's `tolerances:`."""

    rtt_ms: float = 0.2
    rtt_percent: float = 1.0
    """Of the declared round-trip time, added to `rtt_ms`."""
    rate_percent: float = 2.0
    loss_points: float = 0.1


class Plan(_Frozen):
    version: Literal[1] = 1
    name: str
    description: str
    routing: Literal["routed", "neighbours"]
    overlay: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...]
    paths: tuple[Path, ...]
    """One for each pair of hosts that are connected, in file order of source, then target."""
    expect: tuple[dict[str, str], ...] = ()
    """The file's `expect:` entries, as written."""
    tolerances: Tolerances = Tolerances()

    def host(self, name: str) -> Host:
        """The host called `name`. Raises KeyError."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(name)

    @property
    def machines(self) -> tuple[Host | Switch, ...]:
        """Everything that runs: the hosts, then the switches."""
        return (*self.hosts, *self.switches)

    def machine(self, name: str) -> Host | Switch:
        """The host or switch called `name`. Raises KeyError."""
        return next((switch for switch in self.switches if switch.name == name), None) or self.host(name)

    def joins_hosts(self, link: Link) -> bool:
        """Whether both ends are hosts."""
        return not {switch.name for switch in self.switches} & {*link.ends}

    def asks_controller(self, path: Path) -> bool:
        """Whether a switch on the way does what an OpenFlow controller says."""
        told = [switch for switch in self.switches if switch.controller is not None]
        return any(port.link in path.links for switch in told for port in switch.ports)

    def far_address(self, link: Link) -> str:
        """The address on `link` of its second end, as its first end reaches it."""
        far = self.machine(link.ends[1])
        if isinstance(far, Switch):
            return far.address
        return next(port.address for port in far.ports if port.link == link.name)

    def address_over(self, path: Path) -> str:
        """Where the path's target answers: by its own address where routes lead there, else on the shared segment."""
        if self.routing == "routed":
            return self.host(path.target).address
        near = self.neighbours(self.host(path.source))
        return next(far.address for port, host, far in near if host.name == path.target and port.link == path.links[0])

    def ends_on(self, path: Path) -> list[End]:
        """Both ends of each link on the way."""
        return [port for machine in self.machines for port in machine.ports if port.link in path.links]

    def neighbours(self, host: Host) -> Iterator[tuple[Port, Host, Port]]:
        """Every other host on a segment of `host`: by which port it is reached, the host, its port there."""
        subnets = {link.name: link.subnet for link in self.links}
        for port in host.ports:
            for other in self.hosts:
                for far in other.ports:
                    if other != host and subnets[far.link] == subnets[port.link]:
                        yield port, other, far

    def path(self, source: str, target: str) -> Path:
        """The path between two hosts, in either order. Raises KeyError."""
        for path in self.paths:
            if {path.source, path.target} == {source, target}:
                return path
        raise KeyError(f"{source}-{target}")


def to_json(plan: Plan) -> str:
    """`plan` as the JSON document that `minigts plan` prints; the same plan gives the same bytes."""
    return plan.model_dump_json(indent=2) + "\n"


def from_json(text: str) -> Plan:
    """The plan that `to_json` wrote. Raises pydantic.ValidationError."""
    return Plan.model_validate_json(text)

"""What is stored of a plan, in plan.json and manifest.json: what does not follow from the rest of it.

A plan that is read back may have been changed by anybody: `contradictions` says what cannot be in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from minigts.formats.limits import MOST_NOTES
from minigts.topology.fields import (
    MOST_HOSTS,
    MOST_LINKS,
    Description,
    Expectation,
    Hashed,
    Name,
    Network,
    Note,
    OwnSeed,
)
from minigts.topology.frames import Family, families
from minigts.topology.host_setting import PlannedNetwork as HostsNetwork
from minigts.topology.host_settings import misfits, untimely_hosts
from minigts.topology.link_settings import untimely
from minigts.topology.plan.elements import (
    Frozen,
    Group,
    Host,
    HostPort,
    Kubernetes,
    Link,
    OnVlan,
    Switch,
    Tolerances,
    sorted_ports,
)
from minigts.topology.plan.fact import DESCRIBED, NETWORK, PARTS, Fact
from minigts.topology.routes import ipv6
from minigts.topology.routes import ipv6 as v6
from minigts.topology.routes.addresses import DEFAULT_SUBNETS
from minigts.topology.schedule import MOST_MOMENTS, Moment
from minigts.topology.time import Time

VERSION: Literal[2] = 2
MOST_REPLICATES = 1000
HIGHEST_SEED = 999_999
"""The largest seed of `minigts explore`, whose plans are replicates of that number."""
WITH_ROUTES = 1
"""The version of documents with routes and paths, which `minigts plan --json` prints, and which are plans, too."""

_OF_CHANCE = Fact(stays="the random numbers of all links follow from it")


class Stored(Frozen):
    version: Annotated[Literal[2], PARTS] = VERSION
    name: Annotated[Name, Fact(stays="the name of a topology is that of its labs")]
    description: Annotated[Description, DESCRIBED]
    routing: Annotated[
        Literal["routed", "neighbours", "ospf", "bgp", "isis"],
        Fact(stays="hosts find their routes otherwise from their start on", network=True),
    ]
    ecmp: Annotated[
        Hashed | None,
        Field(exclude_if=lambda hashed: hashed is None),
        Fact(stays="hosts find their routes otherwise from their start on", network=True),
    ] = None
    """What of a packet chooses among equal ways: its addresses (layer 3), or its ports, too. None, which is not stored,
    where hosts have one way."""
    bfd_ms: Annotated[
        int | None,
        Field(ge=10, le=10_000, exclude_if=lambda every_ms: every_ms is None),
        Fact(key="bfd", stays="hosts start their routing protocol with it"),
    ] = None
    """The time between two packets of BFD in milliseconds. None, which is not stored, without BFD."""
    time: Annotated[Time, Fact(stays="a lab's clock is chosen as it comes up")] = "real"
    overlay: Annotated[Name, PARTS]
    groups: Annotated[
        tuple[Group, ...],
        Field(max_length=MOST_HOSTS),
        Fact(stays="every overlay is laid over its group's hosts together"),
    ] = ()
    """Groups with an overlay each; without groups one overlay spans all hosts. A host is in one group at the most."""
    kubernetes: Annotated[
        Kubernetes,
        Field(exclude_if=lambda each: each == Kubernetes()),
        Fact(stays="every node gets it as the overlay is joined"),
    ] = Kubernetes()
    """The defaults are not stored."""
    hosts: Annotated[tuple[Host, ...], Field(min_length=1, max_length=MOST_HOSTS), NETWORK]
    switches: Annotated[tuple[Switch, ...], Field(max_length=MOST_HOSTS), NETWORK] = ()
    links: Annotated[tuple[Link, ...], Field(max_length=MOST_LINKS), NETWORK]
    expect: Annotated[tuple[Expectation, ...], DESCRIBED] = ()
    """The file's `expect:` entries, as written."""
    tolerances: Annotated[Tolerances, DESCRIBED] = Tolerances()
    ipv6: Annotated[v6.Ipv6 | None, Field(exclude_if=lambda beside: beside is None), NETWORK] = None
    """The IPv6 addresses of hosts and ports. None, which is not stored, where IPv6 is off on links."""
    ipv4: Annotated[
        bool, Field(exclude_if=lambda there: there), Fact(stays="hosts get their addresses as they boot", network=True)
    ] = True
    """Whether hosts and links have the IPv4 addresses. Without them, which is stored as false, the addresses of `hosts`
    and `switches` are numbers alone: the IPv6 addresses follow from them (`topology/plan/addressing.py`)."""
    dns: Annotated[
        bool, Field(exclude_if=lambda served: not served), Fact(stays="hosts start their name servers as they boot")
    ] = False
    """Whether each host has a name server. False is not stored."""
    subnets: Annotated[
        Network,
        Field(exclude_if=lambda block: block == DEFAULT_SUBNETS),
        Fact(stays="the addresses of all links follow from it"),
    ] = DEFAULT_SUBNETS
    """The block from which segments without a subnet of their own get one. The default is not stored."""
    seed: Annotated[OwnSeed, Field(exclude_if=lambda seed: not seed), _OF_CHANCE] = 0
    """The seed of the random numbers of its links, and of links that are added. The default, 0, is not stored."""
    schedule: Annotated[
        tuple[Moment, ...], Field(max_length=MOST_MOMENTS, exclude_if=lambda each: not each), DESCRIBED
    ] = ()
    """What its links do over time when the schedule is played. An empty one is not stored."""
    notes: Annotated[
        tuple[Note, ...], Field(max_length=MOST_NOTES + 1, exclude_if=lambda notes: not notes), DESCRIBED
    ] = ()
    """What its file, in another language, has and a lab ignores. An empty list is not stored."""
    replicate: Annotated[int, Field(ge=0, le=HIGHEST_SEED, exclude_if=lambda number: not number), _OF_CHANCE] = 0
    """The number of the replicate (topology/plan/reseed.py). 0, which is not stored, is the lab as declared, with every
    host's clock in step."""
    repetition: Annotated[int, Field(ge=0, exclude_if=lambda number: not number), _OF_CHANCE] = 0
    """The repetition with which a lab begins that measures later repetitions of a run alone; 0, which is not stored, in
    any other lab."""

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, document: Any) -> Any:
        """Leave routes and paths out of a document that `minigts plan --json` has printed: they are computed again."""
        if not isinstance(document, dict) or document.get("version") != WITH_ROUTES:
            return document
        kept = {key: value for key, value in document.items() if key not in ("paths", "blocked")}
        if isinstance(beside := kept.get("ipv6"), dict):
            kept["ipv6"] = {**beside, "hosts": _without_routes(beside.get("hosts"))}
        return {**kept, "version": VERSION, "hosts": _without_routes(kept.get("hosts"))}

    @property
    def families(self) -> tuple[Family, ...]:
        """The versions of IP of which hosts and links have addresses."""
        return families(ipv4=self.ipv4, ipv6=self.ipv6 is not None)

    @property
    def machines(self) -> tuple[Host | Switch, ...]:
        """Everything that runs: the hosts, then the switches."""
        return (*self.hosts, *self.switches)

    @property
    def network(self) -> HostsNetwork:
        """Its parts on which settings of hosts depend."""
        return HostsNetwork(self.hosts, self.switches, self.links, self.routing, self.ecmp is not None)


def _without_routes(hosts: Any) -> Any:
    if not isinstance(hosts, list):
        return hosts
    return [
        {key: value for key, value in host.items() if key != "routes"} if isinstance(host, dict) else host
        for host in hosts
    ]


def contradictions(plan: Stored) -> Iterator[str]:
    """Yield each reference to something that the plan does not have, has twice, or has in another place."""
    machines = {machine.name: machine for machine in plan.machines}
    links = {link.name: link for link in plan.links}
    if len(plan.machines) > MOST_HOSTS:
        yield f"{len(plan.machines)} hosts and switches; at most {MOST_HOSTS} are possible"
    yield from _doubles(plan)
    yield from _untimely(plan)
    yield from _out_of_order(plan)
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
    yield from _trees_astray(plan)
    yield from _relationships_astray(plan)
    yield from _members_astray(plan, {host.name for host in plan.hosts})
    yield from misfits(plan.network)
    yield from _other_ipv6(plan)


def _out_of_order(plan: Stored) -> Iterator[str]:
    for kind, entries in (("hosts", plan.hosts), ("switches", plan.switches), ("links", plan.links)):
        indices = [each.index for each in entries]
        if indices != sorted({*indices}):
            yield f"{kind}: indices do not ascend"
    for machine in plan.machines:
        if machine.ports != sorted_ports(machine.ports):
            yield f"{machine.name}: the numbers of its ports do not ascend"


def _trees_astray(plan: Stored) -> Iterator[str]:
    protocols = {each.name: each.spanning_tree.protocol for each in plan.switches if each.spanning_tree is not None}
    for link in plan.links:
        both = [protocols[end] for end in link.ends if end in protocols]
        if (len(both) > 1) is not (link.tree_cost is not None):
            yield f"link {link.name}: a cost in the spanning tree is of links between two switches that have one"
        elif len({*both}) > 1:
            yield f"link {link.name}: its ends have different spanning trees"


def _relationships_astray(plan: Stored) -> Iterator[str]:
    hosts, some = {host.name for host in plan.hosts}, any(link.relationship is not None for link in plan.links)
    if some and (plan.routing != "bgp" or plan.ecmp is not None):
        yield "links have relationships, which only BGP knows, without ECMP"
    for link in plan.links if some else ():
        if link.relationship is None or link.cost is not None or not {*link.ends} <= hosts:
            yield f"link {link.name}: a relationship is of all links or none, between two hosts, and without a cost"


def _members_astray(plan: Stored, hosts: Set[str]) -> Iterator[str]:
    for group in plan.groups:
        yield from (f"group {group.name}: no host {name!r}" for name in group.hosts if name not in hosts)


def _other_ipv6(plan: Stored) -> Iterator[str]:
    if plan.ipv6 is None:
        yield from () if plan.families else ("ipv4: hosts have neither IPv4 nor IPv6 addresses",)
        return
    try:
        same = plan.ipv6 == ipv6.lab_addresses(plan.hosts, plan.links, plan.ipv6.prefix)
    except (KeyError, ValueError):
        same = False
    if not same:
        yield f"ipv6: the addresses are not those that follow from its IPv4 addresses and {plan.ipv6.prefix}"


def _untimely(plan: Stored) -> Iterator[str]:
    for host in plan.hosts:
        yield from untimely_hosts(host, plan.time)
    for machine in plan.machines:
        for port in machine.ports:
            yield from (f"{port.link}: {problem}" for problem in untimely((port.outgoing,), plan.time))


def _doubles(plan: Stored) -> Iterator[str]:
    ports = [(machine, port) for machine in plan.machines for port in machine.ports]
    own = [host.address for host in plan.hosts]
    own += [each.address for switch in plan.switches for each in switch.vlans or (switch,)]
    unique: dict[str, list[str]] = {
        "name": [machine.name for machine in plan.machines],
        "link": [link.name for link in plan.links],
        "MAC": [port.mac for _, port in ports],
        "port": [
            f"{name} of {machine.name}"
            for machine, port in ports
            for name in (port.name, port.altname)
            if name is not None
        ],
        "end": [f"{machine.name} of {port.link}" for machine, port in ports],
        "address": own + [port.address for host in plan.hosts for port in host.on_segments],
        "group": [group.name for group in plan.groups],
        "member": [name for group in plan.groups for name in group.hosts],
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
        elif not isinstance(port, HostPort):
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

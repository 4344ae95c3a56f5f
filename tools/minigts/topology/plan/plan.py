"""The plan: everything a provider, the Vagrantfile, an experiment or the report needs to know of a lab.

`to_json` writes it with all that follows of it, as `minigts plan --json` prints it. The same plan gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from pydantic import model_validator
from pydantic_core import to_json as as_json

from minigts.topology.frames import Family
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.addressing import Addressing, AnyRoute
from minigts.topology.plan.elements import Group, Host, HostPort, Link, OnVlan, Path, Port, Route, Switch
from minigts.topology.plan.fact import fields_with_facts
from minigts.topology.plan.stored import WITH_ROUTES, Stored, contradictions
from minigts.topology.routes import ipv6 as v6
from minigts.topology.routes import switched, underlay
from minigts.topology.routes.aggregate import routes_of_light_hosts
from minigts.topology.routes.paths import Underlay
from minigts.topology.routes.policy_routes import PolicyRoutes
from minigts.topology.routes.several import SeveralWays
from minigts.topology.routes.spanning_tree import BridgeTree
from minigts.topology.routing_engines import ENGINES, PROTOCOLS
from minigts.topology.sysctls import tuning_lines


class Plan(Stored):
    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if (problem := next(contradictions(self), None)) is not None:
            raise ValueError(problem)
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        if not _NETWORK.isdisjoint(update or ()):
            for name in [name for name in vars(copied) if name not in type(self).model_fields]:
                del vars(copied)[name]
        return copied

    def makes_same_lab(self, other: Plan) -> bool:
        """Whether both plans make the same lab. `subnets` and `seed` are not compared; the addresses and seeds that
        came from them are.
        """
        return self.model_copy(update={"subnets": other.subnets, "seed": other.seed}) == other

    def set_to(self, hosts: tuple[Host, ...], switches: tuple[Switch, ...], links: tuple[Link, ...]) -> Self:
        """The same lab with other settings of its links: round trips and rates change, routes do not."""
        copied = self.model_copy(update={"hosts": hosts, "switches": switches, "links": links})
        vars(copied)["_underlay"] = self._underlay.set_to(hosts, switches, links)  # where the cached property keeps it
        return copied

    @cached_property
    def _underlay(self) -> Underlay:
        of = self.hosts, self.switches, self.links
        if self.is_routed:
            found = underlay.underlay_of(*of, ecmp=self.ecmp is not None)
        else:
            found = Underlay.of(*of, is_routed=False)
        return replace(found, family=self.family)

    @cached_property
    def _named(self) -> dict[str, Host | Switch]:
        return {machine.name: machine for machine in self.machines}

    @cached_property
    def _ends(self) -> dict[str, dict[str, tuple[int, Port]]]:
        """By link and machine, the port and its number among all ports."""
        found: dict[str, dict[str, tuple[int, Port]]] = {}
        ports = ((machine.name, port) for machine in self.machines for port in machine.ports)
        for number, (name, port) in enumerate(ports):
            found.setdefault(port.link, {})[name] = number, port
        return found

    @cached_property
    def _members(self) -> dict[str, list[tuple[Host, HostPort]]]:
        """The hosts' ports by subnet."""
        found: dict[str, list[tuple[Host, HostPort]]] = {}
        for host in self.hosts:
            for port in host.on_segments:
                found.setdefault(port.subnet, []).append((host, port))
        return found

    @cached_property
    def _ipv6_named(self) -> dict[str, v6.Ipv6Host]:
        return {} if self.ipv6 is None else {host.name: host for host in self.ipv6.hosts}

    @cached_property
    def _ipv6_numbering(self) -> v6.Numbering | None:
        if self.ipv6 is None:
            return None
        return v6.numbering_of(self.hosts, self.links, self.ipv6.prefix, self.switches)

    def host(self, name: str) -> Host:
        """The host called `name`. Raises KeyError."""
        if not isinstance(found := self._named[name], Host):
            raise KeyError(name)
        return found

    def ipv6_of(self, name: str) -> v6.Ipv6Host | None:
        """The host's IPv6 addresses; None for a switch, and in a lab without IPv6."""
        return self._ipv6_named.get(name)

    @property
    def family(self) -> Family:
        """The version of IP by which hosts reach each other, unless an overlay or a command says otherwise."""
        return self.families[0]

    @cached_property
    def addressings(self) -> tuple[Addressing, ...]:
        """The addresses of each version of IP that the lab has, first those by which hosts reach each other."""
        return tuple(Addressing(family, self._ipv6_numbering if family == "ipv6" else None) for family in self.families)

    def addressings_of(self, machine: Host | Switch) -> tuple[Addressing, ...]:
        """Those of which the machine has addresses: a switch only has the one by which others reach it."""
        return self.addressings[:1] if isinstance(machine, Switch) else self.addressings

    def address_of(self, end: Host | HostPort | Switch | OnVlan) -> str:
        """The address by which others reach a machine, or the end of a link. Raises KeyError where it is not the
        plan's."""
        return self.addressings[0].address(end.address)

    def own_address(self, host: str) -> str:
        """The host's own address, as others reach it. Raises KeyError."""
        return self.address_of(self.host(host))

    def machine(self, name: str) -> Host | Switch:
        """The host or switch called `name`. Raises KeyError."""
        return self._named[name]

    @property
    def is_routed(self) -> bool:
        """Whether each host has a route to every other, static or by a protocol."""
        return self.routing != "neighbours"

    @property
    def has_routers(self) -> bool:
        """Whether the hosts find the plan's routes themselves, by a routing protocol."""
        return self.routing in PROTOCOLS

    @property
    def has_relationships(self) -> bool:
        """Whether each host is an autonomous system, and links say who is whose customer."""
        return any(link.relationship is not None for link in self.links)

    @property
    def protocol_title(self) -> str:
        """The name of its hosts' routing protocol in sentences: OSPF, IS-IS. Only in a lab that has one."""
        return PROTOCOLS[self.routing]

    @property
    def engines(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts by the program that speaks their routing protocol, in the order of `ENGINES`."""
        found = {name: tuple(host.name for host in self.hosts if host.engine == name) for name in ENGINES}
        return {name: hosts for name, hosts in found.items() if hosts}

    @property
    def has_several_ways(self) -> bool:
        """Whether two hosts may have several ways between them, or a way back that is another."""
        return self.is_routed and underlay.has_several_ways(self.hosts, self.links, ecmp=self.ecmp is not None)

    @property
    def limited(self) -> tuple[Host, ...]:
        """The hosts that get a share of a processor."""
        return tuple(host for host in self.hosts if host.cpus < 1)

    @property
    def ways_out(self) -> tuple[Host, ...]:
        """The hosts with a way out to this machine's networks."""
        return tuple(host for host in self.hosts if host.gateway)

    @property
    def tuned(self) -> tuple[Host, ...]:
        """The hosts whose kernel settings differ from the baseline."""
        return tuple(host for host in self.hosts if host.sysctls)

    @property
    def tuning_in_words(self) -> list[str]:
        """`ams, bra: net.core.rmem_default = 4194304`, one line for all hosts with the same settings."""
        return tuning_lines((host.name, host.sysctls) for host in self.tuned)

    @property
    def kernels(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts and switches with each kernel by name; without those that have the standard one."""
        names = dict.fromkeys(each.kernel for each in self.machines if each.kernel)
        return {name: tuple(each.name for each in self.machines if each.kernel == name) for name in names}

    def joins_hosts(self, link: Link) -> bool:
        """Whether both ends are hosts."""
        return not {switch.name for switch in self.switches} & {*link.ends}

    def asks_controller(self, path: Path) -> bool:
        """Whether a switch on the path has an OpenFlow controller."""
        told = [switch for switch in self.switches if switch.controller is not None]
        return any(port.link in path.crossed for switch in told for port in switch.ports)

    @cached_property
    def blocked(self) -> frozenset[str]:
        """The links that the spanning tree of the switches blocks while every link is whole."""
        return switched.blocked_links(self.switches, self.links)

    def tree(self, without: Collection[str] = ()) -> BridgeTree:
        """The spanning tree of the switches over the links other than `without`, by name."""
        names = frozenset(without)
        if names not in self._trees:
            self._trees[names] = switched.tree(self.switches, self.links, names)
        return self._trees[names]

    @cached_property
    def _trees(self) -> dict[frozenset[str], BridgeTree]:
        """Those that were asked for."""
        return {}

    @cached_property
    def told_switches(self) -> frozenset[str]:
        """The switches of rings in which the user's controller decides where frames go."""
        return switched.told_switches(self.switches, self.links)

    @cached_property
    def unflooded(self) -> frozenset[str]:
        """The links of such rings over which nothing is flooded until the controller says otherwise."""
        return switched.unflooded_links(self.switches, self.links)

    @cached_property
    def told(self) -> frozenset[str]:
        """The links over which frames go as the user's controller of a ring of switches decides: paths over them are
        the shortest ones, and may not be the controller's."""
        return switched.told_links(self.switches, self.links)

    def far_address(self, link: Link, end: int = 1) -> str:
        """The address of a link's end, 0 or 1, by which its other end reaches it."""
        far = self.machine(link.ends[end])
        if isinstance(far, Switch):
            vlan, _ = link.segments[0]
            return self.address_of(next((each for each in far.vlans if each.vlan == vlan), far))
        return self.address_of(next(port for port in far.ports if port.link == link.name))

    def address_over(self, path: Path) -> str:
        """The address of the path's target: its own address where hosts have routes, else that on the shared
        segment."""
        if self.is_routed:
            return self.own_address(path.target)
        near = self.neighbours(self.host(path.source))
        ends = (far for port, host, far in near if host.name == path.target and port.link == path.links[0])
        return self.address_of(next(ends))

    def ends_on(self, path: Path) -> list[Port]:
        """Both ends of each link on the path, on any of its ways. A link is there twice where a host routes between two
        of its VLANs."""
        if path.ways_there:
            return [port for link in sorted(path.crossed) for _, port in self._ends[link].values()]
        numbered = {
            number: [port] * times
            for link, times in Counter(path.links).items()
            for number, port in self._ends[link].values()
        }
        return [port for _, ports in sorted(numbered.items()) for port in ports]

    def most_of(self, path: Path, what: Callable[[Port], float]) -> float:
        """The sum of `what` over the ports that send on the path, there and back; of several ways the highest."""
        if not path.ways_there:
            return sum(what(end) for end in self.ends_on(path))
        ends = (path.source, path.each_there), (path.target, path.each_back)
        return sum(max(sum(map(what, self.senders_on(start, way))) for way in ways) for start, ways in ends)

    def senders_on(self, start: str, links: Sequence[str]) -> list[Port]:
        """The ports that send a frame on its way from `start` over these links, in order."""
        found = []
        for link in links:
            found.append(self._ends[link][start][1])
            start = found[-1].peer_host
        return found

    def keeps_order(self, path: Path) -> bool:
        """Whether packets cross every link on the path once, one by one and, losses and jitter aside, in order."""
        return all(end.outgoing.in_order for end in self.ends_on(path))

    def is_filled(self, path: Path) -> bool:
        """Whether TCP can show the rate of every link on the path: none polices, has credits or a black hole."""
        return all(end.outgoing.why_not_filled is None for end in self.ends_on(path))

    def neighbours(self, host: Host) -> Iterator[tuple[HostPort, Host, HostPort]]:
        """Yield, for every other host on a segment of `host`, the port of `host`, the other host, and the other's
        port."""
        for port in host.on_segments:
            for other, far in self._members[port.subnet]:
                if other != host:
                    yield port, other, far

    def group_of(self, host: str) -> Group | None:
        """The group of a host, if it is in one."""
        return next((group for group in self.groups if host in group.hosts), None)

    def path(self, source: str, target: str) -> Path:
        """The path from one host to another, with the way back, which takes the same links unless the path says
        others. Raises KeyError."""
        return self._underlay.path(source, target)

    def paths_from(self, source: str) -> Iterator[Path]:
        """The paths to the connected hosts that come after `source` in the file, in order. Raises KeyError."""
        return self._underlay.paths_from(source)

    @property
    def paths(self) -> tuple[Path, ...]:
        """One path for each pair of connected hosts, in file order of the source, then of the target, which comes after
        it. They are computed at each call: half a million in a lab of a thousand hosts.
        """
        return tuple(self.walk_paths())

    def walk_paths(self, sources: int | None = None) -> Iterator[Path]:
        """Yield the same paths one by one; only those from the first `sources` hosts, if that is given."""
        return (path for host in self.hosts[:sources] for path in self.paths_from(host.name))

    @property
    def pairs(self) -> int:
        """The number of paths."""
        return self._underlay.pairs

    def reaches(self, source: str, target: str) -> bool:
        """Whether the underlay routes packets between the two hosts. Raises KeyError where one is no host."""
        return self._underlay.reaches(source, target)

    def routes_of(self, host: str) -> tuple[Route, ...]:
        """A host's routes, static or to be found by a protocol; none in mode neighbours. Raises KeyError."""
        return self._underlay.routes_of(host)

    def first_links(self, host: str, without: Collection[str] = ()) -> dict[int, tuple[int, frozenset[str]]]:
        """By number of each other host that is reached over links other than `without`, what the best ways to it cost,
        and the links by which they begin. Only for a lab whose links have costs or relationships."""
        if isinstance(self._underlay, PolicyRoutes):
            return self._underlay.first_links(host, without)
        return self._by_costs.first_links(host, without)

    @cached_property
    def _by_costs(self) -> SeveralWays:
        """All best ways by the links' costs, which a routing protocol finds."""
        return SeveralWays.of_costs(self.hosts, self.switches, self.links, ecmp=True)

    def ipv6_routes_of(self, host: str) -> tuple[v6.Ipv6Route, ...]:
        """A host's IPv6 routes, in the order of `routes_of`; none in a lab without IPv6, nor to a network that is no
        host's and no segment's."""
        return tuple(route for route in self.all_routes_of(host) if isinstance(route, v6.Ipv6Route))

    def all_routes_of(self, host: str) -> tuple[AnyRoute, ...]:
        """A host's routes, of every version of IP that the lab has. Raises KeyError."""
        routes = self.routes_of(host)
        return tuple(route for addressing in self.addressings for route in addressing.routes(routes))

    @property
    def sharing(self) -> frozenset[str]:
        """The light hosts, which share kernels."""
        return self._sharing

    @cached_property
    def _sharing(self) -> frozenset[str]:
        return frozenset(host.name for host in self.hosts if host.light)

    def set_routes_of(self, host: Host, addressing: Addressing) -> tuple[AnyRoute, ...]:
        """The routes of one version of IP that are set on a host: its own, and of a light host few that lead alike."""
        if not host.light:
            return addressing.routes(self.routes_of(host.name))
        return self._few_routes[host.name, addressing.family]

    @cached_property
    def _few_routes(self) -> dict[tuple[str, Family], tuple[AnyRoute, ...]]:
        """Those of all light hosts, worked out once: they are asked for by several threads."""
        return routes_of_light_hosts(self.hosts, self.addressings, self._underlay)

    @cached_property
    def _ends_named(self) -> dict[str, tuple[str, str]]:
        return {link.name: link.ends for link in self.links}

    def sending(self, links: Iterable[str] | None = None) -> Iterator[tuple[str, Port]]:
        """The ports at both ends of each of these links that the plan has, by default of all, each with its machine's
        name."""
        for link in self._ends if links is None else links:
            yield from ((name, port) for name, (_, port) in self._ends.get(link, {}).items())

    def ends_of(self, link: str) -> tuple[str, str]:
        """The machines at the two ends of the link of that name. Raises KeyError."""
        return self._ends_named[link]

    def own_end(self, port: Port) -> str:
        """The machine that has this port of a link."""
        first, second = self.ends_of(port.link)
        return second if port.peer_host == first else first

    def mtu_of(self, link: Link) -> int:
        """The MTU of a link, which both its ends have."""
        return self._ends[link.name][link.ends[0]][1].mtu

    def directions(self, link: Link) -> tuple[Shaping, Shaping]:
        """The declared shaping of a link, from its first end to its second, and back."""
        there, back = (self._ends[link.name][end][1].outgoing for end in link.ends)
        return there, back


_NETWORK = frozenset(name for name, fact in fields_with_facts(Stored) if fact.network)
_INDENT = 2


def plan_json(plan: Plan) -> str:
    """The whole document."""
    return "".join(json_pieces(plan))


def json_pieces(plan: Plan, *, with_paths: bool = True) -> Iterator[str]:
    """The document in pieces; its list of paths is empty unless `with_paths`."""
    document: dict[str, object] = {}
    for name, value in plan.model_dump(mode="json").items():
        document[name] = value
        if name == "links":
            if plan.blocked:
                document["blocked"] = [link.name for link in plan.links if link.name in plan.blocked]
            document["paths"] = (path.model_dump(mode="json") for path in plan.walk_paths()) if with_paths else []
    document["version"] = WITH_ROUTES
    document["hosts"] = (_with_routes(plan, host) for host in plan.hosts)
    if plan.ipv6 is not None:
        hosts = (
            {**host.model_dump(mode="json"), "routes": [route.model_dump() for route in plan.ipv6_routes_of(host.name)]}
            for host in plan.ipv6.hosts
        )
        document["ipv6"] = {**plan.ipv6.model_dump(mode="json"), "hosts": hosts}
    yield from _written(document, 0)
    yield "\n"


def _with_routes(plan: Plan, host: Host) -> dict[str, object]:
    """The host's document, with routes after the address."""
    found: dict[str, object] = {}
    for name, value in host.model_dump(mode="json").items():
        found[name] = value
        if name == "address":
            found["routes"] = [route.model_dump() for route in plan.routes_of(host.name)]
    return found


def _written(value: object, depth: int) -> Iterator[str]:
    """As pydantic writes it with that indent; an iterator becomes a list."""
    margin = " " * _INDENT * depth
    if isinstance(value, dict) and value:
        members = ((as_json(key).decode() + ": ", member) for key, member in value.items())
        yield from _json_list(members, "{}", depth)
    elif isinstance(value, Iterator):
        yield from _json_list((("", each) for each in value), "[]", depth)
    else:
        yield as_json(value, indent=_INDENT).decode().replace("\n", f"\n{margin}")


def _json_list(members: Iterable[tuple[str, object]], brackets: str, depth: int) -> Iterator[str]:
    margin = " " * _INDENT * depth
    lead = brackets[0]
    for label, member in members:
        yield f"{lead}\n{margin}{' ' * _INDENT}{label}"
        yield from _written(member, depth + 1)
        lead = ","
    yield brackets if lead == brackets[0] else f"\n{margin}{brackets[1]}"

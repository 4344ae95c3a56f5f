"""A file's plan with the numbers of a lab that is up: whatever the lab has keeps its ports, addresses and MACs. Pure.

Numbers follow from places in a file, so a host that is taken out of its middle would move all behind it. Here hosts,
switches and links are known by their names, and a link also by its ends; new ones get the next numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any, TypeVar

from minigts.errors import InputError
from minigts.language.blocks import OWN_MACS
from minigts.language.interface_names import free_ports
from minigts.topology.plan.elements import Host, HostPort, Link, Machine, OnVlan, Port, Switch, sorted_ports
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import ipv6
from minigts.topology.routes.addresses import assign, free_addresses, host_address, mac, overlaps

M = TypeVar("M", Host, Switch)
Member = tuple[str, str]
"""A subnet, and the name of a machine that has an address in it."""
End = tuple[str, str]
"""The names of a link and of one of its ends."""


def renumber_plan(
    file: Plan,
    lab: Plan,
    given: Collection[str] = (),
    written: Collection[End] = (),
    named: Collection[End] = (),
) -> Plan:
    """The plan of `file` in the lab's numbers. `given` has the names of links whose subnet the file itself says,
    `written` the links and ends whose address it says, and `named` those whose port it says; they have those, whatever
    the lab has. Raises InputError where no subnet or address is left, or two subnets overlap.
    """
    links = _numbered_links(file, lab)
    subnets = _subnets(file, lab, given)
    addresses = _addresses(file, lab, subnets, _written(file, written))
    placed = _Placed(links, subnets, addresses, _ports(file, lab, links, named))
    hosts = _in_order(
        placed.host(host, index) for host, index in zip(file.hosts, _indices(file.hosts, lab.hosts), strict=True)
    )
    switches = _in_order(
        placed.switch(each, index, file)
        for each, index in zip(file.switches, _indices(file.switches, lab.switches), strict=True)
    )
    renamed = tuple(placed.link(link) for link in sorted(file.links, key=lambda link: links[link.name]))
    beside = None if file.ipv6 is None else ipv6.lab_addresses(hosts, renamed, file.ipv6.prefix)
    return Plan(**{**dict(file), "hosts": hosts, "switches": switches, "links": renamed, "ipv6": beside})


def staying_links(before: Plan, after: Plan) -> tuple[Link, ...]:
    """The links of `after` that are links of `before`, too: a link with the same name and other ends is another one."""
    known = {(link.name, link.ends) for link in before.links}
    return tuple(link for link in after.links if (link.name, link.ends) in known)


def _in_order(machines: Iterable[M]) -> tuple[M, ...]:
    return tuple(sorted(machines, key=lambda machine: machine.index))


def _indices(wanted: Sequence[Machine], had: Sequence[Machine]) -> list[int]:
    known = {each.name: each.index for each in had}
    following = 1 + max(known.values(), default=-1)
    found = []
    for each in wanted:
        found.append(known.get(each.name, following))
        following += each.name not in known
    return found


def _numbered_links(file: Plan, lab: Plan) -> dict[str, int]:
    known = {link.name: link.index for link in lab.links}
    stay = {link.name for link in staying_links(lab, file)}
    following = 1 + max(known.values(), default=-1)
    found = {}
    for link in file.links:
        found[link.name] = known[link.name] if link.name in stay else following
        following += link.name not in stay
    return found


def _ports(file: Plan, lab: Plan, links: Mapping[str, int], named: Collection[End]) -> dict[End, str]:
    """The names of the links' ports: those that the file says, else the lab's, else the lowest that is free, in the
    order of the links."""
    stay = {link.name for link in staying_links(lab, file)}
    had = {machine.name: {port.link: port.name for port in machine.ports} for machine in lab.machines}
    found: dict[End, str] = {}
    for machine in file.machines:
        ports = sorted(machine.ports, key=lambda port: links[port.link])
        own = {port.link: port.name for port in ports if (port.link, machine.name) in named}
        for link, name in had.get(machine.name, {}).items():
            if link in stay and name not in own.values():
                own.setdefault(link, name)
        free = free_ports(own.values())
        found |= {(port.link, machine.name): own.get(port.link) or next(free) for port in ports}
    return found


def _subnets(file: Plan, lab: Plan, given: Collection[str]) -> dict[str, str]:
    """The segments' subnets by those that the file's plan has for them."""
    had = {link.name: dict(link.segments) for link in lab.links}
    stay = {link.name for link in staying_links(lab, file)}
    parts: dict[str, list[tuple[int | None, Link]]] = {}
    for link in file.links:
        for vlan, subnet in link.segments:
            parts.setdefault(subnet, []).append((vlan, link))

    def wanted(subnet: str, links: Sequence[tuple[int | None, Link]]) -> str | None:
        if any(link.name in given and not link.vlans for _, link in links):
            return subnet
        there = (had[link.name].get(vlan) for vlan, link in links if link.name in stay)
        return next((each for each in there if each is not None), None)

    kept = [wanted(subnet, links) for subnet, links in parts.items()]
    explicit = [None if each is None else IPv4Network(each) for each in kept]
    _refuse_overlaps([(number, each) for number, each in enumerate(explicit) if each is not None], [*parts.values()])
    sizes = [len({end for _, link in links for end in link.ends}) for links in parts.values()]
    assigned = assign(explicit, IPv4Network(file.subnets), sizes)
    if None in assigned:
        raise InputError(f"no subnet is left in {file.subnets} beside the lab's: give the new link a `subnet`")
    return {subnet: str(each) for subnet, each in zip(parts, assigned, strict=True)}


def _refuse_overlaps(
    networks: Sequence[tuple[int, IPv4Network]], parts: Sequence[Sequence[tuple[int | None, Link]]]
) -> None:
    own = dict(networks)
    for first, second in overlaps(networks):
        names = " and ".join(parts[number][0][1].name for number in (second, first))
        raise InputError(
            f"the subnets of {names} would overlap: {own[first]} is given, and the lab has {own[second]} already"
        )


def _members(plan: Plan) -> Iterator[tuple[Member, str]]:
    """Every machine's address on each of its segments."""
    for host in plan.hosts:
        for port in host.on_segments:
            yield (port.subnet, host.name), port.address
    for switch in plan.switches:
        on = [(switch.address, switch.prefix), *((each.address, each.prefix) for each in switch.vlans)]
        for address, prefix in on:
            yield (_network(address, prefix), switch.name), address


def _network(address: str, prefix: int) -> str:
    return str(IPv4Interface(f"{address}/{prefix}").network)


def _written(file: Plan, ends: Collection[tuple[str, str]]) -> set[Member]:
    """The machines on segments whose address the file says."""
    subnets = {link.name: link.subnet for link in file.links}
    return {(subnets[name], end) for name, end in ends}


def _addresses(file: Plan, lab: Plan, subnets: Mapping[str, str], written: Collection[Member]) -> dict[Member, str]:
    """The machines' addresses by the file's subnets: those that it says, else the lab's, else the file's own, else the
    lowest that is free."""
    had, wanted = dict(_members(lab)), dict(_members(file))
    found = {member: wanted[member] for member in written if member in wanted}
    for subnet, name in wanted:
        if (subnet, name) in found:
            continue
        if (address := had.get((subnets[subnet], name))) is not None:
            found[subnet, name] = address
    taken: dict[str, set[str]] = {now: set() for now in subnets.values()}
    for (subnet, _), address in found.items():
        taken[subnets[subnet]].add(address)
    for (subnet, name), own in sorted(wanted.items(), key=lambda member: IPv4Address(member[1])):
        if (subnet, name) in found:
            continue
        now = subnets[subnet]
        stays = subnet == now and own not in taken[now]
        chosen = own if stays else next(free_addresses(IPv4Network(now), taken[now]), None)
        if chosen is None:
            raise InputError(f"{now} has no address left for {name}")
        found[subnet, name] = chosen
        taken[now].add(chosen)
    return found


class _Placed:
    """Machines and links of the file's plan with their numbers in the lab."""

    def __init__(
        self,
        indices: Mapping[str, int],
        subnets: Mapping[str, str],
        addresses: Mapping[Member, str],
        ports: Mapping[End, str],
    ) -> None:
        self._indices, self._subnets, self._addresses, self._ports = indices, subnets, addresses, ports

    def link(self, link: Link) -> Link:
        return link.model_copy(
            update={
                "index": self._indices[link.name],
                "subnet": self._subnets[link.subnet],
                "vlans": tuple(each.model_copy(update={"subnet": self._subnets[each.subnet]}) for each in link.vlans),
            }
        )

    def host(self, host: Host, index: int) -> Host:
        ports = (
            port.model_copy(
                update={
                    **self._on(port, host.name, port.peer_host),
                    **self._end(port, host.name),
                    "tagged": tuple(
                        each.model_copy(update=self._on(each, host.name, port.peer_host)) for each in port.tagged
                    ),
                }
            )
            for port in host.ports
        )
        return host.model_copy(update={"index": index, "address": host_address(index), "ports": sorted_ports(ports)})

    def switch(self, switch: Switch, index: int, file: Plan) -> Switch:
        ports = (port.model_copy(update=self._end(port, switch.name)) for port in switch.ports)
        return switch.model_copy(
            update={
                "index": index,
                **self._on(switch, switch.name),
                "ports": sorted_ports(ports),
                "vlans": tuple(each.model_copy(update=self._on(each, switch.name)) for each in switch.vlans),
                "controller": self._controller(switch.controller, file),
            }
        )

    def _end(self, port: Port, machine: str) -> dict[str, Any]:
        name = self._ports[port.link, machine]
        # Both ends of a link know each other, and the first one's own MAC ends in 1.
        if not port.mac.startswith(OWN_MACS):
            return {"name": name}
        second = port.mac.endswith(":02")
        return {"name": name, "mac": mac(self._indices[port.link], int(second))}

    def _on(self, one: HostPort | OnVlan | Switch, machine: str, peer: str = "") -> dict[str, Any]:
        subnet = _network(one.address, one.prefix)
        of_peer = {"peer_address": self._addresses[subnet, peer]} if peer else {}
        prefix = IPv4Network(self._subnets[subnet]).prefixlen
        return {"address": self._addresses[subnet, machine], "prefix": prefix, **of_peer}

    def _controller(self, written: str | None, file: Plan) -> str | None:
        if written is None:
            return None
        address, _, port = written.rpartition(":")
        for member, own in _members(file):
            if own == address:
                return f"{self._addresses[member]}:{port}"
        return written

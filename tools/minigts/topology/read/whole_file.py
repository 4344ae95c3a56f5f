"""What must hold of a topology file as a whole: names, ends, values that hang together, subnets, connectedness. What
must hold of one link, wherever its settings come from, is in `link_rules`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import TypeAlias

from minigts.language.blocks import reserved_block
from minigts.language.problems import Finding, Location, did_you_mean, list_names, path_of, quote
from minigts.language.tree import Data
from minigts.topology import containers, link_rules, overlay_names
from minigts.topology.facts.hosts.kernel import NAME
from minigts.topology.facts.lab.groups import written_groups
from minigts.topology.fields import HOST_NAME, HOST_NAME_HINT, MOST_HOSTS
from minigts.topology.host_settings import HOST_SETTINGS, untimely_keys
from minigts.topology.link_settings import untimely
from minigts.topology.read.declared import Draft, DraftHost, DraftLink, DraftSwitch
from minigts.topology.read.links import END_SETTINGS
from minigts.topology.read.model import LAB_SETTINGS, SHORTHANDS
from minigts.topology.routes import segments
from minigts.topology.routes.addresses import DEFAULT_SUBNETS, assign, capacity, overlaps
from minigts.topology.routes.graph import connected_components
from minigts.topology.routes.segments import NO_VLAN, Segment
from minigts.topology.routing_engines import PROTOCOLS, written_protocol
from minigts.topology.time import Time

_LISTED = 12
WrongKernel: TypeAlias = "Callable[[str], str]"
"""Why hosts cannot have a kernel of that name here; empty where they can."""


def check(
    data: Data,
    drafted: Draft,
    known_overlays: Collection[str] | None,
    time: Time,
    wrong_kernel: WrongKernel | None = None,
) -> Iterator[Finding]:
    """Everything wrong with the whole of `drafted`, which comes from the document `data`.

    `known_overlays` are the names that `overlay:` may have; None leaves it unchecked, as it does the names of kernels.
    `time` is the lab's.
    """
    document = data if isinstance(data, dict) else {}
    hosts: Location = ("hosts",) if "hosts" in document else ()
    yield from _machines(drafted, hosts)
    yield from _ends(drafted)
    for of_ends in END_SETTINGS.values():
        yield from of_ends.problems(drafted.links)
    for link in drafted.links:
        yield from link_problems(link)
    yield from segments.wrong_segments(drafted)
    overlaid = document.get("overlay") not in (None, *overlay_names.UNDERLAYS)
    yield from _subnets(drafted, document.get("subnets"), overlaid)
    for key, setting in LAB_SETTINGS.items():
        if document.get(key) is not None:
            yield from setting.problems(document, drafted)
    groups = written_groups(document)
    yield from _by_routes(document, drafted)
    yield from _hosts(document, drafted)
    yield from _connected(drafted, written_protocol(document), hosts, groups)
    yield from _overlay(document.get("overlay"), known_overlays)
    yield from _kernels(document, wrong_kernel)
    yield from _untimely(document, time)
    for link in drafted.links:
        yield from ((link.where, problem) for problem in dict.fromkeys(untimely(link.ways, time)))
    yield from containers.check({host.name: (host.where, host.containers) for host in drafted.hosts})


def _machines(drafted: Draft, where: Location) -> Iterator[Finding]:
    if not drafted.hosts and drafted.all_hosts:
        yield (), f"no hosts: give `hosts:` and `links:`, or one of the shorthands {list_names(SHORTHANDS)}"
    machines = drafted.machines
    if len(machines) > MOST_HOSTS:
        kinds = "hosts and switches" if drafted.switches else "hosts"
        yield where, f"{len(machines)} {kinds}; at most {MOST_HOSTS} are possible"
    seen: dict[str, DraftHost | DraftSwitch] = {}
    for machine in machines:
        if (problem := wrong_with_name(machine.name)) is not None:
            yield machine.where, problem
        if machine.name in seen:
            first = seen[machine.name]  # a host: hosts come first, and the names of switches are a mapping's keys
            yield machine.where, f"host {machine.name!r} is already declared in {path_of(first.where)}"
        seen.setdefault(machine.name, machine)


def wrong_with_name(name: str) -> str | None:
    """Why `name` cannot name a host or switch; None where it can."""
    if not HOST_NAME.fullmatch(name):
        return f"{quote(name)} is not {HOST_NAME_HINT}"
    return "'localhost' is every host's name for itself; choose another" if name == "localhost" else None


def _ends(drafted: Draft) -> Iterator[Finding]:
    hosts = list(dict.fromkeys(host.name for host in drafted.hosts))
    switches = [switch.name for switch in drafted.switches]
    kinds, also = ("host or switch", f"; switches are {list_names(switches)}") if switches else ("host", "")
    for link in drafted.links:
        if link.where[0] == "links":
            for end, name in enumerate(link.ends):
                # The hosts of a refused shorthand are not known here, so a missing name proves nothing.
                if name not in (*hosts, *switches) and drafted.all_hosts:
                    hint = did_you_mean(name, (*hosts, *switches))
                    yield (*link.where, "ends", end), f"no {kinds} {name!r}; hosts are {list_names(hosts)}{also}{hint}"
        if link.ends[0] == link.ends[1]:
            yield link.where, f"a link from {link.ends[0]!r} to itself; its two ends must be different hosts"


def link_problems(link: DraftLink) -> Iterator[Finding]:
    """What is wrong with the settings of one link."""
    name = link.name or "-".join(link.ends)
    ruled = link_rules.RuledLink(name, link.ends, (link.ways.to, link.ways.back), link.mtu)
    yield from ((link.where, problem) for problem in link_rules.problems(ruled))


def _subnets(drafted: Draft, subnets: Data, overlaid: bool) -> Iterator[Finding]:
    links, parts = drafted.links, segments.segments_of(drafted)
    given = {
        index: (lead, IPv4Network(links[lead].subnet or ""))
        for index, part in enumerate(parts)
        if (lead := next((each for each in part.links if links[each].subnet and not links[each].vlans), None))
        is not None
    }
    for lead, network in given.values():
        if user := reserved_block(network, overlaid=overlaid):
            yield (*links[lead].where, "subnet"), f"{network} overlaps {user}"
    clashes = sorted(set(overlaps([(lead, network) for lead, network in given.values()])))
    networks = dict(given.values())
    for later, earlier in clashes:
        other = f"{networks[earlier]} of {path_of(links[earlier].where)}"
        yield (*links[later].where, "subnet"), f"{networks[later]} overlaps {other}"
    pool = _pool(subnets)
    if pool is None or clashes:
        return
    if user := reserved_block(pool, overlaid=overlaid):
        yield ("subnets",), f"{pool} overlaps {user}"
        return
    explicit = [given[index][1] if index in given else None for index in range(len(parts))]
    assigned = assign(explicit, pool, [len(part.members) for part in parts])
    if None in assigned:
        where = links[parts[assigned.index(None)].links[0]].where
        left = f"{assigned.count(None)} of {len(parts)} links get no subnet: {pool} holds {capacity(pool)}"
        yield where, f"{left}; give a larger block as `subnets:`, or each of them a `subnet:`"
    yield from _room(drafted, parts, assigned)
    yield from _addresses(drafted, parts, explicit)


def _addresses(drafted: Draft, parts: Sequence[Segment], networks: Sequence[IPv4Network | None]) -> Iterator[Finding]:
    """Addresses of links' ends, which lie in a subnet that the file gives, each once."""
    for part, network in zip(parts, networks, strict=True):
        owners: dict[str, str] = {}
        for link in (drafted.links[index] for index in part.links if not drafted.links[index].vlans):
            for name, address in link.addresses:
                if name in link.ends:
                    where = (*link.where, "addresses", name)
                    yield from ((where, why) for why in _no_address(name, address, network, owners))
                    owners.setdefault(address, name)


def _no_address(name: str, address: str, network: IPv4Network | None, owners: Mapping[str, str]) -> Iterator[str]:
    """Why a machine cannot have this address on a segment, where `owners` have others."""
    if network is None:
        yield f"which subnet is {address} in? Give the segment's `subnet:`"
    elif IPv4Address(address) not in network or IPv4Address(address) in (network[0], network[-1]):
        yield f"{address} is no host's address in {network}, the segment's subnet"
    elif owners.get(address, name) != name:
        yield f"{address} is that of {owners[address]} already"
    elif any(owner == name and other != address for other, owner in owners.items()):
        yield f"{name} has another address on this segment already"


def _room(drafted: Draft, parts: Sequence[Segment], networks: Sequence[IPv4Network | None]) -> Iterator[Finding]:
    for part, network in zip(parts, networks, strict=True):
        room = network.num_addresses - 2 if network is not None else len(part.members)
        if len(part.members) > room:
            where = drafted.links[part.links[0]].where
            yield where, f"{network} has addresses for {room}, and {len(part.members)} hosts and switches share it"


def _pool(subnets: Data) -> IPv4Network | None:
    """The block from which segments get subnets; None when the model refuses the file's block."""
    try:
        return IPv4Network(subnets if isinstance(subnets, str) else DEFAULT_SUBNETS)
    except ValueError:
        return None


def _connected(
    drafted: Draft, routing: Data, where: Location, groups: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Check that links join all hosts, unless routing is `neighbours`, and all hosts of each group."""
    names = {machine.name for machine in drafted.machines}
    whole = drafted.all_hosts and drafted.all_links
    ends = [link.ends for link in drafted.links]
    if not whole or any(name not in names for each in (*ends, *groups.values()) for name in each):
        return
    carried = list(zip(ends, segments.vlans_of_links(drafted), strict=True))
    in_vlans = {name for link, vlans in carried if vlans != NO_VLAN for name in link} - {
        host.name for host in drafted.hosts
    }

    def node(name: str, vlan: int | None) -> str | tuple[str, int]:
        """A switch is a node for each VLAN, because no frame crosses from one to another."""
        return name if name not in in_vlans or vlan is None else (name, vlan)

    nodes: list[str | tuple[str, int]] = [each.name for each in drafted.machines if each.name not in in_vlans]
    joined = ((node(first, vlan), node(second, vlan)) for (first, second), vlans in carried for vlan in vlans)
    found = ([name for name in part if isinstance(name, str)] for part in connected_components(nodes, joined))
    parts = [part for part in found if part]
    for group, members in groups.items():
        among = [[name for name in members if name in part] for part in parts]
        if len(own := [part for part in among if part]) > 1:
            yield ("groups", group), f"no link joins {_in_words(own)}; the hosts of a group reach each other over links"
    if routing not in (None, "routed", *PROTOCOLS):
        return
    remedy = "join them with links, or write `routing: neighbours`"
    if not groups and len(parts) > 1:
        yield where, f"no link joins these {len(parts)} groups of hosts: {_in_words(parts)}; {remedy}"
    members_of_any = {name for members in groups.values() for name in members}
    if groups and (astray := [part for part in parts if members_of_any.isdisjoint(part)]):
        yield where, f"no link joins {_in_words(astray)} to a group; {remedy}"


def _by_routes(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    """Costs of links in a lab that has no routes, and relationships in one without their routes."""
    related = next((link for link in drafted.links if link.relationship is not None), None)
    if related is not None:
        where = (*related.where, "relationship")
        if written_protocol(document) != "bgp":
            yield where, "only BGP knows customers, peers and providers: write `routing: bgp`, or take it out"
        if document.get("ecmp") not in (None, "false"):
            yield ("ecmp",), "with relationships each host has one best way: take one of the two out"
        if document.get("overlay") not in (None, *overlay_names.UNDERLAYS):
            yield (
                ("overlay",),
                "overlays are laid over hosts of one operator, and links have relationships: take one out",
            )
    costly = next((link for link in drafted.links if link.costs is not None), None)
    if written_protocol(document) == "neighbours" and costly is not None:
        yield costly.where, "`routing: neighbours` leaves hosts without routes, so a cost has no effect; take it out"


def _hosts(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    """What is wrong with the hosts' settings in this document."""
    for host in drafted.hosts:
        for key, setting in HOST_SETTINGS.items():
            if (value := getattr(host.spec, key)) is not None:
                yield from (((*host.place_of(key), *where), why) for where, why in setting.problems(value, document))


def _in_words(parts: Sequence[Sequence[str]]) -> str:
    return " | ".join(list_names(part) for part in parts[:_LISTED])


def _overlay(overlay: Data, known: Collection[str] | None) -> Iterator[Finding]:
    if isinstance(overlay, str) and known is not None and overlay not in known:
        if (why := overlay_names.why_unknown(overlay, known)) is not None:
            yield ("overlay",), why
            return
        hint = did_you_mean(overlay, known)
        yield ("overlay",), f"no overlay {quote(overlay)}; overlays are {list_names(sorted(known))}{hint}"


def _kernels(document: Mapping[str, Data], wrong: WrongKernel | None) -> Iterator[Finding]:
    """Kernels that hosts cannot have on this machine."""
    if wrong is None:
        return
    for where, settings in (((), document), *_settings_of_hosts(document)):
        name = settings.get("kernel")
        if isinstance(name, str) and NAME.fullmatch(name) and (why := wrong(name)):
            yield (*where, "kernel"), why


def _untimely(document: Mapping[str, Data], time: Time) -> Iterator[Finding]:
    """Settings of hosts that do not apply to the lab's time."""
    for where, settings in _settings_of_hosts(document):
        yield from (((*where, key), why) for key, why in untimely_keys(settings, time))


def _settings_of_hosts(document: Mapping[str, Data]) -> Iterator[tuple[Location, Mapping[str, Data]]]:
    """The settings of hosts in the file, each with its place."""
    hosts = document.get("hosts")
    own = (("hosts", name) for name in (hosts if isinstance(hosts, dict) else ()))
    for where in (*((key, "host") for key in ("defaults", *SHORTHANDS)), *own):
        settings: Data = {**document}
        for key in where:
            settings = settings.get(str(key)) if isinstance(settings, dict) else None
        if isinstance(settings, dict):
            yield where, settings

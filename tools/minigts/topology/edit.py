"""A plan with a host or link added or removed; all others keep their names, ports, addresses and MACs. Pure.

What is new is numbered as an edited file is, by `renumber`, and what comes of it judged as that is, by `difference`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import combinations
from types import MappingProxyType
from typing import TypeVar

from pydantic import ValidationError

from minigts.errors import InputError
from minigts.language.problems import did_you_mean, list_names, path_of, quote
from minigts.language.tree import Data
from minigts.language.validation import findings_of
from minigts.topology import sites
from minigts.topology.difference import FROM_START, difference
from minigts.topology.host_settings import BY_HAND, HOST_SETTINGS, HostSpec, misfits
from minigts.topology.link_rules import RuledLink
from minigts.topology.link_settings import SETTABLE
from minigts.topology.plan.build import end_of, free_name, host_of, link_of, shapings
from minigts.topology.plan.elements import Host, HostPort, Link, Port, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft, DraftHost, DraftLink, DraftSwitch
from minigts.topology.read.draft import draft_host, draft_link
from minigts.topology.read.links import BY_HAND as OF_LINKS_BY_HAND
from minigts.topology.read.links import LinkSpec
from minigts.topology.read.model import Defaults
from minigts.topology.read.per_direction import BothWays
from minigts.topology.read.whole_file import check
from minigts.topology.renumber import renumber_plan

NO_DEFAULTS = Defaults()
UNNUMBERED, NO_SUBNET = "eth0", "0.0.0.0/24"
"""A new port and a new link until `renumber` has numbered them; no segment can have that subnet."""
M = TypeVar("M", Host, Switch)


def add_host(
    plan: Plan, name: str, neighbour: str, settings: Mapping[str, str], defaults: Defaults = NO_DEFAULTS
) -> Plan:
    """The plan with a new host `name` and its link to `neighbour`. `settings` has keys of hosts and of links, as in a
    topology file, with a dot for each mapping (`sysctls.net.ipv4.ip_forward`). `defaults` is what the lab's file says
    for others. Raises InputError where the host cannot be added.
    """
    if name in _machines(plan):
        raise InputError(f"{name} is in the lab already")
    written = _nested(settings)
    _require_by_hand(name, written)
    own = {key: value for key, value in written.items() if key in BY_HAND}
    try:
        spec = HostSpec.model_validate(own)
    except ValidationError as error:
        raise _refusal(error, HostSpec) from error
    usual = HostSpec.model_construct(**{key: getattr(defaults.host, key, None) for key in BY_HAND})
    host = draft_host(("hosts", name), name, (spec, usual))
    of_link = {key: value for key, value in settings.items() if key.partition(".")[0] not in BY_HAND}
    return _with_link(plan, _drafted_link(plan, name, neighbour, of_link, defaults), (host,), {name: own})


def add_link(
    plan: Plan, first: str, second: str, settings: Mapping[str, str], defaults: Defaults = NO_DEFAULTS
) -> Plan:
    """The plan with a new link between two machines. `defaults` are those of the lab's file. Raises InputError."""
    return _with_link(plan, _drafted_link(plan, first, second, settings, defaults))


def _with_link(
    plan: Plan, draft: DraftLink, beside: Sequence[DraftHost] = (), written: Mapping[str, Data] = MappingProxyType({})
) -> Plan:
    """The plan with a link, and with a host beside it of which `written` is said."""
    lab, switch = _as_in_a_file(plan), _switch_of(plan, draft.ends)
    drafted = replace(lab, hosts=(*lab.hosts, *beside), links=(*lab.links, draft))
    if any(link.delay_from is not None for link in plan.links):
        drafted = replace(drafted, links=(*lab.links, sites.add_site_delays(drafted).links[-1]))
    _require_as_a_file(plan, drafted, written)
    hosts = (*plan.hosts, *(host_of(each, 1 + max(host.index for host in plan.hosts), (), "") for each in beside))
    draft = drafted.links[-1]
    subnet = IPv4Network(draft.subnet or (NO_SUBNET if switch is None else _own_subnet(plan, switch)))
    link = link_of(0, draft, str(draft.where[1]), {None: str(subnet)}, plan.family)
    addresses = {end: str(subnet[number]) for number, end in enumerate(link.ends, 1)}
    if switch is not None:  # taken, so the host gets the lowest address that is free
        addresses = dict.fromkeys(link.ends, switch.address)
    towards = shapings(draft, link.name, plan.seed)
    joined = {name: end_of(link, at, draft.mtu, towards, UNNUMBERED) for at, name in enumerate(link.ends)}
    return _with(
        plan,
        tuple(_with_port(host, joined.get(host.name), addresses, subnet.prefixlen) for host in hosts),
        tuple(
            each.model_copy(update={"ports": (*each.ports, joined[each.name])}) if each.name in joined else each
            for each in plan.switches
        ),
        (*plan.links, link),
        () if draft.subnet is None else (link.name,),
    )


def _as_in_a_file(plan: Plan) -> Draft:
    """The lab's hosts, switches and links as far as the rules of a file ask for them."""

    def drafted(link: Link) -> DraftLink:
        ruled = RuledLink.of_plan(plan, link)
        costs = None if link.cost is None or plan.has_routers else BothWays(link.cost, link.cost_back or link.cost)
        vlans = tuple(each.number for each in link.vlans) or None
        where, ways = ("links", link.name), BothWays(*ruled.ways)
        return DraftLink(
            where,
            link.ends,
            link.name,
            link.subnet,
            ways,
            ruled.mtu,
            costs=costs,
            relationship=link.relationship,
            vlan=link.vlan,
            vlans=vlans,
        )

    return Draft(
        tuple(
            DraftHost(("hosts", each.name), each.name, HostSpec.model_construct(location=each.location))
            for each in plan.hosts
        ),
        tuple(map(drafted, plan.links)),
        all_hosts=True,
        all_links=True,
        switches=tuple(
            DraftSwitch(
                ("switches", each.name),
                each.name,
                each.location,
                each.memory_mb,
                each.controller,
                *(() if each.spanning_tree is None else (each.spanning_tree.protocol, each.spanning_tree.priority)),
            )
            for each in plan.switches
        ),
    )


def _require_as_a_file(plan: Plan, drafted: Draft, written: Mapping[str, Data]) -> None:
    """Raise InputError for the first thing that is wrong in a file of the lab with what is new in `drafted`."""
    document: dict[str, Data] = {
        "routing": {"protocol": plan.routing, "engine": next(iter(plan.engines))} if plan.has_routers else plan.routing,
        "subnets": plan.subnets,
        "overlay": plan.overlay,
        "groups": {each.name: [*each.hosts] for each in plan.groups} or None,
        "ipv6": None if plan.ipv6 is None else "true",
        "ipv4": None if plan.ipv4 else "false",
    }
    known = [*check(document, _as_in_a_file(plan), None, plan.time)]
    with_new: dict[str, Data] = {**document, "hosts": dict(written)}
    new = ({*drafted.links[-1].where[1:]}, {*written})
    found = (*check(with_new, drafted, None, plan.time), *sites.check(drafted))
    for where, why in (each for each in found if each not in known):
        of_new = len(where) > 1 and any(where[1] in each for each in new)
        place = "" if "ends" in where else path_of(where[2:] if of_new else where)
        raise InputError(f"{place}: {why}" if place else why)


def remove_link(plan: Plan, name: str) -> Plan:
    """The plan without link `name`. Raises InputError where hosts would no longer reach each other."""
    names = [link.name for link in plan.links]
    if name not in names:
        raise InputError(f"no link {quote(name)}; there are {list_names(names)}{did_you_mean(name, names)}")
    return _without(plan, None, [name])


def remove_host(plan: Plan, name: str) -> Plan:
    """The plan without host `name` and its links. Raises InputError where others would no longer reach each other."""
    host = _machines(plan).get(name)
    if not isinstance(host, Host):
        is_switch = f"{name} is a switch, and switches cannot be removed; " if host is not None else ""
        known = [each.name for each in plan.hosts]
        raise InputError(f"{is_switch}no host {quote(name)}; there are {list_names(known)}{did_you_mean(name, known)}")
    if len(plan.hosts) == 1:
        raise InputError(f"{name} is the lab's only host: end the lab with minigts down")
    if (group := plan.group_of(name)) is not None:
        raise InputError(f"{name} is in group {group.name}, over which overlays are laid, so it cannot be removed")
    for switch in plan.switches:
        addresses = {port.address for port in host.ports}
        if switch.controller is not None and switch.controller.partition(":")[0] in addresses:
            raise InputError(f"{name} runs the controller of {switch.name}, so it cannot be removed")
    return _without(plan, name, [port.link for port in host.ports])


def _without(plan: Plan, host: str | None, names: Sequence[str]) -> Plan:
    ends = ("-".join(each) for link in plan.links if link.name in names for each in (link.ends, link.ends[::-1]))
    if scheduled := {*names, *ends} & {moment.link for moment in plan.schedule}:
        raise InputError(f"the schedule of the topology changes {scheduled.pop()}, so it cannot be removed")
    hosts = tuple(_without_ports(each, names) for each in plan.hosts if each.name != host)
    switches = tuple(_without_ports(each, names) for each in plan.switches)
    if (alone := next((each.name for each in switches if not each.ports), None)) is not None:
        raise InputError(f"switch {alone} would have no link left")
    fewer = _with(plan, hosts, switches, tuple(link for link in plan.links if link.name not in names))
    for source, target in combinations((each.name for each in fewer.hosts), 2):
        if plan.reaches(source, target) and not fewer.reaches(source, target):
            remedy = "cut it instead: minigts link HOST HOST down"
            raise InputError(f"{source} would not reach {target} any more; {remedy}")
    return fewer


def _drafted_link(plan: Plan, first: str, second: str, settings: Mapping[str, str], defaults: Defaults) -> DraftLink:
    written = _nested(settings)
    if strange := next((key for key in written if key not in OF_LINKS_BY_HAND), None):
        raise InputError(f"{quote(strange)} is no setting of a link: write {list_names([*OF_LINKS_BY_HAND])}")
    try:
        spec = LinkSpec.model_validate({"ends": [first, second], **written})
    except ValidationError as error:
        raise _refusal(error, LinkSpec) from error
    taken = {link.name for link in plan.links}
    if spec.name in taken:
        raise InputError(f"link {spec.name!r} is in the lab already")
    name = spec.name or free_name(spec.ends, taken)
    draft = draft_link(("links", name), spec.ends, (spec, defaults.link), spec)
    if draft.tables is not None:
        raise InputError("links of the lab's file have a table of delays: give this one a jitter of its own, or 0ms")
    return draft


def _nested(settings: Mapping[str, str]) -> dict[str, Data]:
    """The settings as a file has them: `queue=100kB queue.discipline=codel` is `queue: {size: 100kB, discipline:
    codel}`."""
    found: dict[str, Data] = {}
    for word, value in settings.items():
        head, _, key = word.partition(".")
        if key or any(each.startswith(f"{head}.") for each in settings):
            inside = SETTABLE[head].inside if head in SETTABLE else ""
            mapping = found.setdefault(head, {})
            assert isinstance(mapping, dict), "every word of such a head is in the mapping"
            mapping[key or inside] = value
        else:
            found[head] = value
    return found


def _require_by_hand(name: str, written: Iterable[str]) -> None:
    """Raises InputError for a key of hosts that a host cannot have which is added by hand."""
    for key in written:
        if key in HOST_SETTINGS and key not in BY_HAND:
            later = HOST_SETTINGS[key].from_start is not None
            in_file = "write it in the topology's file, and bring that up: minigts up FILE"
            raise InputError(f"host {name}: {key}: {FROM_START if later else in_file}")


def _refusal(error: ValidationError, model: type[HostSpec | LinkSpec]) -> InputError:
    found = findings_of(error, model)
    return InputError("; ".join(f"{path_of(where)}: {message}" if where else message for where, message in found))


def _machines(plan: Plan) -> dict[str, Host | Switch]:
    return {machine.name: machine for machine in plan.machines}


def _switch_of(plan: Plan, ends: tuple[str, str]) -> Switch | None:
    switches = [each for each in plan.switches if each.name in ends]
    if len(switches) > 1:
        raise InputError("a link between two switches would make one segment of two, or a ring: change the topology")
    if switches and switches[0].vlans:
        raise InputError(f"the links of {switches[0].name} have VLANs: change the topology, and bring the lab up anew")
    return switches[0] if switches else None


def _own_subnet(plan: Plan, switch: Switch) -> str:
    return next(link.subnet for link in plan.links if link.name == switch.ports[0].link)


def _with_port(host: Host, end: Port | None, addresses: Mapping[str, str], prefix: int) -> Host:
    if end is None:
        return host
    port = HostPort(**dict(end), address=addresses[host.name], prefix=prefix, peer_address=addresses[end.peer_host])
    return host.model_copy(update={"ports": (*host.ports, port)})


def _without_ports(machine: M, names: Iterable[str]) -> M:
    """The machine without its ports on these links."""
    return machine.model_copy(update={"ports": tuple(port for port in machine.ports if port.link not in names)})


def _with(
    plan: Plan,
    hosts: tuple[Host, ...],
    switches: tuple[Switch, ...],
    links: tuple[Link, ...],
    given: Collection[str] = (),
) -> Plan:
    """The plan with these machines and links, and what is new in the plan's numbers, but for the subnets of links that
    are `given`. Raises InputError where `minigts up` of a file would refuse the same."""
    drafted = plan.model_copy(update={"hosts": hosts, "switches": switches, "links": links})
    if (stray := next(misfits(drafted.network), None)) is not None:
        raise InputError(f"what the lab's topology says would not hold any more: {stray}")
    after = renumber_plan(drafted, plan, given)
    if refused := difference(plan, after).refused:
        raise InputError("; ".join((*refused, "change the topology, and bring the lab up anew")))
    return after

"""What an edited file changes of a lab that is up: what is added, removed and set, and what a running lab cannot
have.

Both sides are plans, the second one in the lab's numbers (`renumber`). Whatever differs is in one of the lists of
`Difference`, or refused with a sentence: a field that this module does not know is refused, too. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from minigts.topology.host_settings import HOST_SETTINGS, keys_of
from minigts.topology.link_setting import Amount, Setting
from minigts.topology.link_settings import LINK_SETTINGS, Shaping
from minigts.topology.plan.elements import Host, HostPort, Link, Port, Switch
from minigts.topology.plan.fact import fields_with_facts
from minigts.topology.plan.plan import Plan
from minigts.topology.renumber import staying_links

M = TypeVar("M", Host, Switch)
FROM_START = "a host that is added while the lab is up cannot have it"
_OF_LAB, _OF_MACHINES = dict(fields_with_facts(Plan)), dict(fields_with_facts(Host, Switch))
_OF_LINKS, _OF_PORTS = dict(fields_with_facts(Link)), dict(fields_with_facts(HostPort, Port))
_DESCRIBED = tuple(key for key, fact in _OF_LAB.items() if fact.described)


@dataclass(frozen=True)
class Set:
    """One setting of a link in one direction."""

    link: str
    sender: str
    setting: Setting
    before: Amount | None
    after: Amount | None

    @property
    def in_words(self) -> str:
        """`delay 5 ms -> 10 ms`"""
        return f"{self.setting.word} {_amount(self.setting, self.before)} -> {_amount(self.setting, self.after)}"


@dataclass(frozen=True)
class Difference:
    """What leads from a lab's plan to another one; with `refused`, nothing of it can be done."""

    before: Plan
    after: Plan
    added: tuple[str, ...]
    """The names of hosts that come."""
    removed: tuple[str, ...]
    added_links: tuple[str, ...]
    removed_links: tuple[str, ...]
    set: tuple[Set, ...]
    described: tuple[str, ...]
    """The keys that no host knows, such as `expect`."""
    overlay: tuple[str, str] | None
    """The file's overlay before and now; None: the same."""
    refused: tuple[str, ...]
    """A sentence for each thing that a lab cannot have while it is up."""

    @property
    def is_empty(self) -> bool:
        return not (self.comes_or_goes or self.set or self.described or self.overlay or self.refused)

    @property
    def comes_or_goes(self) -> bool:
        """Whether hosts or links are added or removed."""
        return bool(self.added or self.removed or self.added_links or self.removed_links)

    @property
    def set_links(self) -> tuple[str, ...]:
        """The names of links whose settings change."""
        return tuple(dict.fromkeys(each.link for each in self.set))

    @property
    def lines(self) -> tuple[str, ...]:
        """The difference in lines: `+ host par`, `- link a-b`, `~ b-c delay 5 ms -> 10 ms`; not what is refused."""
        one = "from {} "
        lines = [f"- link {name}" for name in self.removed_links]
        lines += [f"- host {name}" for name in self.removed]
        lines += [f"+ host {name}" for name in self.added]
        lines += [f"+ link {name}" for name in self.added_links]
        both: dict[tuple[str, str], list[str]] = {}
        for each in self.set:
            both.setdefault((each.link, each.in_words), []).append(each.sender)
        for (link, words), senders in both.items():
            lines.append(f"~ link {link} {one.format(senders[0]) if len(senders) == 1 else ''}{words}")
        if self.overlay is not None:
            lines.append(f"~ overlay {self.overlay[0]} -> {self.overlay[1]}")
        return (*lines, *(f"~ {key}" for key in self.described))


def difference(before: Plan, after: Plan) -> Difference:
    """What leads from plan `before` to plan `after`, which is in its numbers."""
    had, have = _machines(before), _machines(after)
    stay = {link.name for link in staying_links(before, after)}
    described = [key for key in _DESCRIBED if getattr(before, key) != getattr(after, key)]
    described += [f"host {name} location" for name in had if name in have and had[name].location != have[name].location]
    made = Difference(
        before,
        after,
        added=tuple(name for name in have if name not in had),
        removed=tuple(name for name in had if name not in have),
        added_links=tuple(link.name for link in after.links if link.name not in stay),
        removed_links=tuple(link.name for link in before.links if link.name not in stay),
        set=tuple(each for link in after.links if link.name in stay for each in _set(before, after, link)),
        described=tuple(described),
        overlay=None if before.overlay == after.overlay else (before.overlay, after.overlay),
        refused=(),
    )
    refused = tuple(dict.fromkeys(_refused(made, stay)))
    return Difference(**{**vars(made), "refused": refused or tuple(_unknown(made, stay))})


def plan_with_settings(made: Difference) -> Plan:
    """The plan before with all that changes under traffic as it is after: hosts and links are still the same."""
    before, after = made.before, made.after
    ports = {(name, port.link): port for name, machine in _machines(after).items() for port in machine.ports}
    stay = {link.name: link for link in staying_links(before, after)}

    there = _machines(after)

    def set_as_after(machine: M) -> M:
        found = there.get(machine.name)
        now = tuple(
            port.model_copy(update=_shaped(ports[machine.name, port.link])) if port.link in stay else port
            for port in machine.ports
        )
        return machine.model_copy(
            update={"ports": now, "location": machine.location if found is None else found.location}
        )

    def figures(link: Link) -> Link:
        if link.name not in stay:
            return link
        kept = {key: getattr(link, key) for key, fact in _OF_LINKS.items() if fact.stays}
        return stay[link.name].model_copy(update=kept)

    described = {key: getattr(after, key) for key in (*_DESCRIBED, "overlay")}
    return before.model_copy(
        update={
            **described,
            "hosts": tuple(map(set_as_after, before.hosts)),
            "switches": tuple(map(set_as_after, before.switches)),
            "links": tuple(map(figures, before.links)),
        }
    )


def _shaped(port: Port) -> dict[str, Shaping]:
    return {"outgoing": port.outgoing, "incoming": port.incoming}


def _machines(plan: Plan) -> dict[str, Host | Switch]:
    return {machine.name: machine for machine in plan.machines}


def _amount(setting: Setting, amount: Amount | None) -> str:
    return "none" if amount is None else setting.value_words(amount)


def _set(before: Plan, after: Plan, link: Link) -> Iterator[Set]:
    had = before.directions(next(each for each in before.links if each.name == link.name))
    for sender, was, now in zip(link.ends, had, after.directions(link), strict=True):
        for each in LINK_SETTINGS:
            old, new = getattr(was, each.field), getattr(now, each.field)
            if old != new:
                yield Set(link.name, sender, each, old, new)


def _refused(made: Difference, stay: set[str]) -> Iterator[str]:
    before, after = made.before, made.after
    for key, fact in _OF_LAB.items():
        if fact.stays and getattr(before, key) != getattr(after, key):
            yield f"{fact.key or key}: {fact.stays}"
    if (before.ipv6 and before.ipv6.prefix) != (after.ipv6 and after.ipv6.prefix):
        yield "ipv6: hosts get their IPv6 addresses as they boot"
    if made.removed and len(made.removed) == len(before.machines):
        yield "hosts: the file has none of the lab's hosts: it is another network"
    yield from _refused_of_machines(before, after)
    yield from _refused_of_links(before, after, stay)
    for each in made.set:
        if not each.setting.under_traffic:
            yield f"link {each.link}: {each.setting.word}: it cannot change under traffic"
    if made.comes_or_goes:
        yield from _refused_coming_or_going(made, stay)


def _refused_of_machines(before: Plan, after: Plan) -> Iterator[str]:
    had, have = _machines(before), _machines(after)
    for name, machine in have.items():
        kind = machine.role
        if (was := had.get(name)) is None:
            yield from _refused_of_new(machine)
        elif was.role != kind:
            yield f"{kind} {name}: it is a {was.role} in the lab"
        else:
            for key, fact in _OF_MACHINES.items():
                if fact.stays and getattr(was, key, None) != getattr(machine, key, None):
                    yield f"{kind} {name}: {fact.key or _keys(machine, key)}: {fact.stays}"
    yield from (
        f"switch {name}: a switch cannot be removed while the lab is up"
        for name, machine in had.items()
        if isinstance(machine, Switch) and name not in have
    )


def _keys(machine: Host | Switch, field: str) -> str:
    """The keys of a file from which a machine's field follows, in words."""
    *others, last = keys_of(field)
    return f"{', '.join(others)} or {last}" if others and isinstance(machine, Host) else last


def _refused_of_new(machine: Host | Switch) -> Iterator[str]:
    if isinstance(machine, Switch):
        yield f"switch {machine.name}: a switch cannot be added while the lab is up"
        return
    for key, setting in HOST_SETTINGS.items():
        if setting.from_start is not None and setting.from_start(machine):
            yield f"host {machine.name}: {key}: {FROM_START}"


def _refused_of_links(before: Plan, after: Plan, stay: set[str]) -> Iterator[str]:
    links = {link.name: link for link in before.links}
    old, new = _machines(before), _machines(after)
    for link in (each for each in after.links if each.name in stay):
        was = links[link.name]
        yield from (f"link {link.name}: {why}" for why in _refused_of_link(was, link, before))
        for end in link.ends:
            if end in new and end in old:
                then, now = _port(old[end], link.name), _port(new[end], link.name)
                same_subnets = was.segments == link.segments
                said = _refused_of_port(then, now, same_subnets=same_subnets)
                yield from (f"link {link.name}: {why}" for why in said)


def _refused_of_link(was: Link, link: Link, before: Plan) -> Iterator[str]:
    differ = {key: fact for key, fact in _OF_LINKS.items() if fact.stays and getattr(was, key) != getattr(link, key)}
    other_vlans = (was.vlan, [each.number for each in was.vlans]) != (link.vlan, [each.number for each in link.vlans])
    for key, fact in differ.items():
        if key in ("subnet", "vlans") and not other_vlans:
            yield f"subnet: {_OF_LINKS['subnet'].stays} ({was.subnet}, not {link.subnet})"
        elif key.startswith("cost") and before.has_routers:
            yield f"hosts find their routes by {before.protocol_title}, and the delays say what a link costs there"
        elif key != "subnet":
            yield f"{fact.key}: {fact.stays}"


def _refused_of_port(then: Port, now: Port, *, same_subnets: bool) -> Iterator[str]:
    for field, fact in _OF_PORTS.items():
        follows = fact.key == "addresses" and not same_subnets
        if fact.stays and not follows and getattr(then, field, None) != getattr(now, field, None):
            yield f"{fact.key or field}: {fact.stays}"


def _port(machine: Host | Switch, link: str) -> Port:
    return next(port for port in machine.ports if port.link == link)


def _refused_coming_or_going(made: Difference, stay: set[str]) -> Iterator[str]:
    before, after = made.before, made.after
    what = ", ".join((*made.added, *made.removed, *made.added_links, *made.removed_links))
    if before.has_routers:
        yield f"{what}: hosts find their routes by {before.protocol_title}, whose costs depend on all links together"
    for plan in (before, after):
        for switch in plan.switches:
            moved = [port.link for port in switch.ports if port.link not in stay]
            if switch.vlans and moved:
                yield f"link {moved[0]}: the links of {switch.name} have VLANs, which it gets as it boots"
    if before.ipv6 is not None and after.ipv6 is not None:
        was, now = _ipv6(before), _ipv6(after)
        if any(now[end] != address for end, address in was.items() if end in now):
            yield f"{what}: IPv6 addresses of other hosts would change; only what came last can be removed"


def _ipv6(plan: Plan) -> dict[tuple[str, int | None], str]:
    """IPv6 addresses by a port's MAC and VLAN, and each host's own by its name."""
    found: dict[tuple[str, int | None], str] = {}
    for host in plan.hosts:
        own = plan.ipv6_of(host.name)
        assert own is not None, "the plan has IPv6"
        found[host.name, None] = own.address
        found |= {(port.mac, port.vlan): own.port(port.name).address for port in host.on_segments}
    return found


def _unknown(made: Difference, stay: set[str]) -> Iterator[str]:
    """Sentences for what else differs: fields that came after this module."""
    first, after = plan_with_settings(made), made.after
    had, have = _machines(first), _machines(after)
    for name in had.keys() & have.keys():
        if _without_coming(had[name], stay) != _without_coming(have[name], stay):
            yield f"{have[name].role} {name}: it differs in what cannot change while the lab is up"
    links = {link.name: link for link in first.links}
    yield from (
        f"link {link.name}: it differs in what cannot change while the lab is up"
        for link in after.links
        if link.name in stay and links[link.name] != link
    )
    aside = {"hosts", "switches", "links", "ipv6"}
    names = [name for name in Plan.model_fields if name not in aside and getattr(first, name) != getattr(after, name)]
    yield from (f"{name}: it cannot change while the lab is up" for name in names)


def _without_coming(machine: Host | Switch, stay: set[str]) -> Host | Switch:
    """The machine with the ports on links that stay."""
    return machine.model_copy(update={"ports": tuple(port for port in machine.ports if port.link in stay)})

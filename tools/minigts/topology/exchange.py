"""A plan as a network that other formats can say, with notes of what none of them can."""

from __future__ import annotations

from minigts.formats.network import Link, Machine, Network, Notes, Ways
from minigts.topology import parts, switching
from minigts.topology.draft import DEFAULT_CPUS, DEFAULT_MEMORY_MB, DEFAULT_MTU
from minigts.topology.plan import Plan

_FROM_SITES = ("measured", "distance", "same site", "no site")


def network_of(plan: Plan) -> Network:
    """What is declared of hosts, switches and links. A setting that is the default is left open."""
    notes = Notes()
    for what, there in (
        ("overlay", plan.overlay != "none"),
        ("groups", bool(plan.groups)),
        ("ipv6", plan.ipv6 is not None),
        ("expect", bool(plan.expect)),
    ):
        if there:
            notes.add(what, plan.name, "no other format has it")
    for host in plan.hosts:
        if host.software is not None or host.containers:
            notes.add("its software and containers", host.name, "no other format has them as we do")
        if host.gateway:
            notes.add("gateway", host.name, "every other format has a way out of its own")
    for link in plan.links:
        if any(way.in_bursts or way.corrupt_percent or not way.in_order for way in plan.directions(link)):
            notes.add("burst, reorder, duplicate, corrupt, slot", link.name, "no other format has them as we do")
        if link.vlan is not None or link.vlans:
            notes.add("vlan, vlans", link.name, "written without; the hosts of a switch are one segment there")
    return Network(
        name=plan.name,
        machines=tuple(_machine(plan, each) for each in plan.machines),
        links=tuple(_link(plan, each) for each in plan.links),
        description=plan.description,
        routing=plan.routing,
        sites=any(link.delay_from is not None for link in plan.links),
        notes=(*plan.notes, *notes.lines()),
    )


def _machine(plan: Plan, machine: parts.Host | parts.Switch) -> Machine:
    controller = machine.controller if isinstance(machine, parts.Switch) else None
    default = (machine.cpus, machine.memory_mb) == (DEFAULT_CPUS, DEFAULT_MEMORY_MB)
    return Machine(
        name=machine.name,
        is_switch=isinstance(machine, parts.Switch),
        location=machine.location,
        cpus=None if default else max(1, round(machine.cpus)),
        memory_mb=None if default else machine.memory_mb,
        controller=None if controller is None else _controller(plan, controller),
    )


def _controller(plan: Plan, written: str) -> str:
    address, _, port = written.partition(":")
    if address == switching.BUILTIN_ADDRESS:
        return switching.BUILTIN
    named = next((host.name for host in plan.hosts for end in host.on_segments if end.address == address), address)
    return f"{named}:{port}"


def _link(plan: Plan, link: parts.Link) -> Link:
    to, back = plan.directions(link)
    mtu = next(port.mtu for port in plan.machine(link.ends[0]).ports if port.link == link.name)
    rates: Ways | None = None
    if to.rate_mbit is not None and back.rate_mbit is not None:
        rates = (to.rate_mbit, back.rate_mbit)
    return Link(
        ends=link.ends,
        name=link.name,
        delay_ms=None if link.delay_from in _FROM_SITES else (to.delay_ms, back.delay_ms),
        jitter_ms=_unless_zero((to.jitter_ms, back.jitter_ms)),
        loss_percent=_unless_zero((to.loss_percent, back.loss_percent)),
        rate_mbit=rates,
        mtu=None if mtu == DEFAULT_MTU else mtu,
    )


def _unless_zero(ways: Ways) -> Ways | None:
    return ways if any(ways) else None

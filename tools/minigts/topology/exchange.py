"""A plan as a network that other formats can say, with what none of them can."""

from __future__ import annotations

from ipaddress import IPv4Network

from minigts.formats.network import Link, Machine, Network, Notes, Ways
from minigts.topology import parts, switching
from minigts.topology.checks import default_subnets
from minigts.topology.draft import DEFAULT_CPUS, DEFAULT_MEMORY_MB, DEFAULT_MTU
from minigts.topology.parts import Tolerances
from minigts.topology.plan import Plan
from minigts.topology.queues import queue_bytes

_FROM_SITES = ("measured", "distance", "same site", "no site")


def network_of(plan: Plan) -> Network:
    """What is declared of hosts, switches and links. A setting that is the default is left open.

    What no other format can say is lost where it bears on delay, rate, loss, addresses or who is joined to whom; the
    rest is notes.
    """
    notes, lost = Notes(), Notes()
    for what, there in (("expect", bool(plan.expect)), ("tolerances", plan.tolerances != Tolerances())):
        if there:
            notes.add(what, plan.name, "no other format has it")
    for what, there in (
        (f"overlay {plan.overlay}", plan.overlay != "none"),
        ("groups", bool(plan.groups)),
        ("ipv6", plan.ipv6 is not None),
        ("schedule", bool(plan.schedule)),
    ):
        if there:
            lost.add(what, plan.name, "no other format has it")
    if plan.has_routers:
        notes.add(f"routing: {plan.routing}", plan.name, "no other format has it as we do")
    for host in plan.hosts:
        _say_of_host(host, notes, lost)
    for link in plan.links:
        ways = plan.directions(link)
        for what, there in (
            ("burst", any(way.in_bursts for way in ways)),
            ("slot", any(way.slot_ms for way in ways)),
            ("queue", any(way.queue_bytes != queue_bytes(way.rate_mbit, link.rtt_ms) for way in ways)),
            ("vlan", link.vlan is not None or bool(link.vlans)),
        ):
            if there:
                why = "the hosts of a switch are one segment there" if what == "vlan" else "no other format has it"
                lost.add(what, link.name, why)
    return Network(
        name=plan.name,
        machines=tuple(_machine(plan, each) for each in plan.machines),
        links=tuple(_link(plan, each) for each in plan.links),
        description=plan.description,
        routing=plan.routing,
        sites=any(link.delay_from is not None for link in plan.links),
        notes=(*plan.notes, *notes.lines()),
        lost=lost.lines(),
    )


def _say_of_host(host: parts.Host, notes: Notes, lost: Notes) -> None:
    if host.software is not None or host.containers:
        notes.add("its software and containers", host.name, "no other format has them as we do")
    if host.gateway:
        notes.add("gateway", host.name, "every other format has a way out of its own")
    if host.sysctls:
        lost.add("sysctls", host.name, "each format has them otherwise, or not at all")
    if host.processor is not None:
        lost.add("processor", host.name, "no other format has it")


def _machine(plan: Plan, machine: parts.Host | parts.Switch) -> Machine:
    controller = machine.controller if isinstance(machine, parts.Switch) else None
    default = (machine.cpus, machine.memory_mb) == (DEFAULT_CPUS, DEFAULT_MEMORY_MB)
    return Machine(
        name=machine.name,
        is_switch=isinstance(machine, parts.Switch),
        location=machine.location,
        cpus=None if default else machine.cpus,
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
        corrupt_percent=_unless_zero((to.corrupt_percent, back.corrupt_percent)),
        duplicate_percent=_unless_zero((to.duplicate_percent, back.duplicate_percent)),
        reorder_percent=_unless_zero((to.reorder_percent, back.reorder_percent)),
        subnet=_subnet(plan, link),
    )


def _subnet(plan: Plan, link: parts.Link) -> str | None:
    """That of a link which has not the one that would follow from its place, in a file that says none."""
    own = IPv4Network(link.subnet)
    return None if own.subnet_of(IPv4Network(default_subnets())) or link.vlan or link.vlans else link.subnet


def _unless_zero(ways: Ways) -> Ways | None:
    return ways if any(ways) else None

"""The carriers of a lab's ports: whether they can be taken away, and how that is done where hosts shape.

Where links have wires, a wire has its port's carrier among its settings (`lab/links.py`), and the clock takes it at its
moment. Elsewhere the provider takes it, if it can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import outages
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.providers import supported
from minigts.providers.base import CARRIERS, Carrier, CarriesLinks, SetsCarriers
from minigts.topology import link_rules
from minigts.topology.outage import Outage
from minigts.topology.plan.elements import Host, Link, Port, Switch
from minigts.topology.plan.plan import Plan


def require(lab: Lab, name: str, how: Outage, instead: str = "") -> None:
    """Raises InputError where the link has no such end, EnvironmentLacks where the lab's ports cannot lose their
    carrier. The error says what to do instead; by default, to cut the link in silence."""
    (link,) = (each for each in lab.plan.links if each.name == name)
    require_end(link, how.end)
    if how.silent:
        return
    instead = instead or f"cut it in silence: minigts link {name} down --silent"
    supported.refuse(
        supported.RequiredFeature(CARRIERS, f"{name} down", instead), lab.provider.name, lab.provider.supports
    )
    if isinstance(lab.provider, SetsCarriers) and (why := lab.provider.carriers_lack()):
        raise EnvironmentLacks(f"{name} down: {why}; or {instead}")


def require_end(link: Link, end: str | None) -> None:
    """Raises InputError where the link has no such end; None is none."""
    if wrong := link_rules.strange_end(end, link.name, link.ends):
        raise InputError(wrong)


def set_carriers(
    lab: Lab,
    record: Record,
    machines: Sequence[Host | Switch],
    only: Collection[str] | None = None,
    before: Record | None = None,
) -> None:
    """Let the ports of these machines have a carrier, or none, as they should now; `only` and `before` are as in
    `links.set_ports`. Only ports that differ from `before` are set; without it, those that should have none."""
    if isinstance(lab.provider, CarriesLinks) or not isinstance(lab.provider, SetsCarriers):
        return
    ports = [(each, port) for each in machines for port in each.ports if only is None or port.link in only]
    wanted = [
        Carrier(machine.name, port.name, port.mac, on=outages.has_carrier(lab.plan, port, record))
        for machine, port in ports
        if _is_to_be_set(lab.plan, (machine, port), record, before)
    ]
    if wanted:
        lab.provider.set_carriers(wanted)


def _is_to_be_set(plan: Plan, end: tuple[Host | Switch, Port], record: Record, before: Record | None) -> bool:
    """Whether a port may have another carrier than it should. One of a machine that has just booted has one; one that a
    command was setting may have none."""
    machine, port = end
    has = outages.has_carrier(plan, port, record)
    if before is None or machine.name in before.unsettled:
        return not has or (machine.name in record.unsettled and record.state != "starting")
    return has != outages.has_carrier(plan, port, before)

"""Hosts and links are added to a lab that is up, and removed from it, while the others run on."""

from __future__ import annotations

from collections.abc import Iterator

from minigts.dataplane import interfaces
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import events, lifecycle, links, provisioning
from minigts.lab.keep import CERTIFICATE
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.lab.rundir import exclusive
from minigts.machine.progress import Progress
from minigts.providers import supported
from minigts.providers.base import Edits
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan

Started = frozenset[str]
"""The names of hosts and switches that were started, for the first time or again."""


def require(lab: Lab, record: Record) -> Edits:
    """The lab's provider, if it can alter the lab now. Raises EnvironmentLacks, InputError."""
    provider = lab.provider
    if not isinstance(provider, Edits):
        raise EnvironmentLacks(f"provider {provider.name} cannot add or remove hosts or links; uml can")
    if record.state != "up":
        raise InputError(f"lab {lab.name} is not up")
    if record.unsettled:
        raise InputError(f"lab {lab.name}: a command was interrupted while it set links; run minigts up first")
    if record.paused:
        raise InputError(f"{min(record.paused)} is paused: minigts resume {min(record.paused)}")
    return provider


def alter(lab: Lab, after: Plan, progress: Progress) -> Started:
    """Alter the lab so that it has plan `after`, which was made from its own plan (`topology.edit`). Machines whose
    ports differ are restarted on their own disks; the others run on, with new routes. Changed links stay changed.

    The caller has taken the overlay off. Raises InputError when the lab's plan has changed since, EnvironmentLacks,
    HostFailed.
    """
    with exclusive(lab.rundir):
        found, before = lab.read_record(), lab.plan
        provider = require(lab, found)
        if lab.read_plan(found) != before:
            raise InputError(f"another command has altered lab {lab.name} meanwhile; try again")
        supported.require(after, lab.provider.name, lab.provider.supports)
        machines, names = {each.name for each in after.machines}, {link.name for link in after.links}
        started = provider.alter(after, progress)
        record = found.model_copy(
            update={
                "altered": True,
                "off": found.off & machines,
                "cut": found.cut & names,
                "changed": {name: each for name, each in found.changed.items() if name in names},
                "plan_sha256": lab.write_plan(after),
            }
        )
        meanwhile = record.model_copy(update={"unsettled": frozenset(machines - record.off)})
        lab.write(meanwhile, found)
        lab.note(*({**event, "started": sorted(started)} for event in _happened(before, after)))
        now = Lab.known(lab.rundir, after, lab.provider)
        (now.rundir / CERTIFICATE).unlink(missing_ok=True)
        progress("configuring addresses, routes and links")
        _configure(now, meanwhile, before, started)
        now.write(record, meanwhile)
    return started


def _happened(before: Plan, after: Plan) -> Iterator[events.Event]:
    """The events of the alteration. Links of a host that is added or removed have none of their own."""
    for what, one, other in (("added", after, before), ("removed", before, after)):
        known = {machine.name for machine in other.machines}
        hosts = [host.name for host in one.hosts if host.name not in known]
        yield from ({"event": what, "host": name} for name in hosts)
        links_of_both = [link for link in one.links if known.issuperset(link.ends)]
        there = {link.name for link in other.links}
        yield from ({"event": what, "link": link.name} for link in links_of_both if link.name not in there)


def _configure(lab: Lab, record: Record, before: Plan, started: Started) -> None:
    on = lab.machines_on(record)
    booted = [machine for machine in on if machine.name in started]
    links.set_wires(lab, record, booted)

    def configure(machine: Host | Switch) -> None:
        if machine.name in started:
            lifecycle.configure(lab, machine, record)
        else:
            links.run_script(lab.provider, machine, interfaces.script_again(before, lab.plan, machine))

    lab.on_each(on, configure)
    for machine in booted:
        if isinstance(machine, Switch):
            lifecycle.take_step(lab, machine, "ask_controller")
        else:
            provisioning.run_commands(lab, machine)

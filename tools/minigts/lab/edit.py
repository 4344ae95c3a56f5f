"""A lab that is up gets another plan: links are set otherwise, and hosts and links are added and removed, while the
others run on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from minigts.dataplane import interfaces
from minigts.errors import EnvironmentLacks, HostFailed, InputError
from minigts.lab import current, events, lifecycle, links, own_kernels, provisioning, shown_links
from minigts.lab.keep import CERTIFICATE
from minigts.lab.lab import Lab
from minigts.lab.record import LAST_PLAN, NEXT_PLAN, Record
from minigts.lab.rundir import exclusive
from minigts.language.tree import Data
from minigts.machine.progress import Progress
from minigts.providers import supported
from minigts.providers.base import Edits, Restarts
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.read.model import Defaults
from minigts.topology.renumber import staying_links

DEFAULTS = "defaults.json"
Started = frozenset[str]
"""The names of hosts and switches that were started, for the first time or again."""


def require(lab: Lab, record: Record) -> Edits:
    """The lab's provider, if it can alter the lab now. Raises EnvironmentLacks, InputError."""
    provider = _edits(lab)
    own_kernels.require_of_all(lab.plan, "keeps its hosts and links as long as it is up")
    if record.state != "up":
        raise InputError(f"lab {lab.name} is not up")
    _refuse_interrupted(lab, record)
    if record.paused:
        raise InputError(f"{min(record.paused)} is paused: minigts resume {min(record.paused)}")
    return provider


def _edits(lab: Lab) -> Edits:
    provider = lab.provider
    if not isinstance(provider, Edits):
        raise EnvironmentLacks(f"provider {provider.name} cannot add or remove hosts or links; uml can")
    return provider


def _refuse_interrupted(lab: Lab, record: Record) -> None:
    """Raise InputError for a lab that a command has left half done."""
    if record.becoming:
        raise InputError(
            f"lab {lab.name}: a command was interrupted while it added or removed hosts or links: minigts up TOPOLOGY "
            "goes on with that"
        )
    if record.unsettled:
        raise InputError(f"lab {lab.name}: a command was interrupted while it set links; run minigts up first")


def keep_defaults(lab: Lab, written: Data) -> None:
    """Keep what the lab's file says under `defaults:`, as written, for hosts and links that are added by hand."""
    lab.put(DEFAULTS, json.dumps(written if isinstance(written, dict) else {}) + "\n")


def defaults_of(lab: Lab) -> Defaults:
    """The defaults of the lab's file; none in a lab of a plan."""
    return lab.read(DEFAULTS, Defaults) or Defaults()


def declare(lab: Lab, after: Plan, progress: Progress, *, altered: bool) -> Lab:
    """Give the lab plan `after`, which has the same hosts and links with other settings, under traffic; return the
    lab with that plan. A link whose settings differ is set as `after` says, whatever it was set to before. `altered`
    says whether no topology file describes the lab then.

    An interrupted call leaves a lab with the new plan whose machines are recorded as unsettled: `up` sets them. Raises
    InputError when a machine is paused whose routes change, HostFailed.
    """
    with exclusive(lab.rundir):
        found, before = lab.read_record(), lab.plan
        _refuse_interrupted(lab, found)
        _refuse_another(lab, found)
        lab.settle_plan(found)
        names = _set_otherwise(before, after)
        ends = [machine for machine in after.machines if any(port.link in names for port in machine.ports)]
        routed = [host for host in after.hosts if before.all_routes_of(host.name) != after.all_routes_of(host.name)]
        if paused := found.paused.intersection(host.name for host in routed):
            raise InputError(f"{min(paused)} is paused, and its routes change: minigts resume {min(paused)}")
        changed = {name: each for name, each in found.changed.items() if name not in names}
        digest = lab.write_plan(after, NEXT_PLAN)
        record = found.model_copy(update={"changed": changed, "plan_sha256": digest, "altered": altered})
        record = current.numbered_record((before, found), (after, record), names)
        touched = frozenset(machine.name for machine in (*ends, *routed))
        meanwhile = record.model_copy(update={"unsettled": touched})
        lab.write(meanwhile, found)
        lab.take_next_plan()
        now = Lab.known(lab.rundir, after, lab.provider)
        if touched:
            (now.rundir / CERTIFICATE).unlink(missing_ok=True)
            progress("setting links and routes")
            _set_under_traffic(now, record, before, ends, routed, names)
        now.note(*({"event": "set", "link": name, "how": "as its topology says now"} for name in sorted(names)))
        now.write(record, meanwhile)
    return now


def _set_under_traffic(
    lab: Lab,
    record: Record,
    before: Plan,
    ends: Sequence[Host | Switch],
    routed: Sequence[Host],
    names: frozenset[str],
) -> None:
    if current.link_carrier(lab) is None:
        shaping = [machine for machine in ends if machine.name not in record.silent]
        lab.work_on(shaping, lambda machine: links.set_what_differs(lab, record, machine))
    else:
        links.set_wires(lab, record, ends, names)
    if wrong := shown_links.read_back(lab, record, ends, names):
        raise HostFailed("links are not as they were set:\n" + "\n".join(wrong))
    on = [host for host in routed if host.name not in record.silent]
    lab.work_on(on, lambda host: links.run_script(lab.provider, host, interfaces.script_again(before, lab.plan, host)))


def _set_otherwise(before: Plan, after: Plan) -> frozenset[str]:
    """The links that the two plans set otherwise."""
    return frozenset(
        link.name
        for link, was in zip(after.links, before.links, strict=True)
        if after.directions(link) != before.directions(was)
    )


def _refuse_another(lab: Lab, record: Record) -> None:
    if lab.read_plan(record) != lab.plan:
        raise InputError(f"another command has altered lab {lab.name} meanwhile; try again")


def alter(lab: Lab, after: Plan, progress: Progress, *, altered: bool = True) -> Started:
    """Alter the lab so that it has plan `after`, which was made from its own plan (`topology.edit`). Machines whose
    ports differ are restarted on their own disks; the others run on, with new routes. Changed links stay changed.

    `altered` says whether no topology file describes the lab then. The caller has taken the overlay off. An interrupted
    call leaves a lab whose record says what it is becoming; `finish` goes on with that. Raises InputError when the
    lab's plan has changed since, EnvironmentLacks, HostFailed.
    """
    with exclusive(lab.rundir):
        found, before = lab.read_record(), lab.plan
        provider = require(lab, found)
        _refuse_another(lab, found)
        lab.settle_plan(found)
        supported.require(after, lab.provider.name, lab.provider.supports)
        had = {host.name for host in before.hosts}
        provisioning.require_files(host for host in after.hosts if host.name not in had)
        lab.write_plan(before, LAST_PLAN)
        becoming = found.model_copy(update={"becoming": lab.write_plan(after, NEXT_PLAN), "altered": altered})
        lab.write(becoming, found)
        started = provider.alter(after, progress)
        _complete(lab, becoming, before, after, started, progress)
    return started


def finish(lab: Lab, progress: Progress) -> Lab:
    """Complete an alteration that was interrupted, if there is one; return the lab with the plan that it has then.

    Machines whose ports it changed are started again. Raises what `alter` raises.
    """
    with exclusive(lab.rundir):
        found = lab.read_record()
        if not found.becoming:
            return lab
        lab.settle_plan(found)
        provider, after = _edits(lab), lab.plan_with(found.becoming)
        if after is None:
            raise lab.damage_error(NEXT_PLAN, "is not the one that the lab was to have")
        before = lab.read(LAST_PLAN, Plan) or lab.read_plan(found)
        progress("going on with an alteration that was interrupted")
        began = provider.alter(after, progress)
        had = {machine.name: [port.mac for port in machine.ports] for machine in before.machines}
        other = {each.name for each in after.machines if had.get(each.name) != [port.mac for port in each.ports]}
        again = sorted(other - began - found.off)
        if isinstance(lab.provider, Restarts):
            for name in again:
                lab.provider.restart(name)
        _complete(lab, found, before, after, began.union(again), progress)
    return lab.reopened


def _complete(lab: Lab, becoming: Record, before: Plan, after: Plan, started: Started, progress: Progress) -> None:
    """Give the lab plan `after`, for which the provider has altered it, and configure its machines."""
    machines = {machine.name for machine in after.machines}
    names = {link.name for link in staying_links(before, after)}
    record = becoming.model_copy(
        update={
            "becoming": "",
            "off": becoming.off & machines,
            "cut": becoming.cut & names,
            "without_carrier": frozenset(each for each in becoming.without_carrier if each[0] in names),
            "changed": {name: each for name, each in becoming.changed.items() if name in names},
            "plan_sha256": becoming.becoming,
            "unsettled": frozenset(),
        }
    )
    now = Lab.known(lab.rundir, after, lab.provider)
    gone = [(link.name, end) for link in before.links if link.name not in names for end in link.ends]
    booted = [machine for machine in now.machines_on(record) if machine.name in started]
    record = record.counting(gone)  # a new link of that name does not lose what it has lost
    record = record.counting(links.redrawn_directions(now, record, booted))
    meanwhile = record.model_copy(update={"becoming": becoming.becoming, "unsettled": frozenset(machines - record.off)})
    lab.write(meanwhile, becoming)
    if (lab.rundir / NEXT_PLAN).exists():
        lab.take_next_plan()
    if becoming.plan_sha256 != becoming.becoming:  # otherwise they were noted before the interruption
        lab.note(*({**event, "started": sorted(started)} for event in _happened(before, after)))
    (now.rundir / CERTIFICATE).unlink(missing_ok=True)
    progress("configuring addresses, routes and links")
    _configure(now, meanwhile, before, started)
    now.write(record, meanwhile)
    (now.rundir / LAST_PLAN).unlink(missing_ok=True)


def _happened(before: Plan, after: Plan) -> Iterator[events.Event]:
    """The events of the alteration. Links of a host that is added or removed have none of their own."""
    for what, one, other in (("added", after, before), ("removed", before, after)):
        known = {machine.name for machine in other.machines}
        hosts = [host.name for host in one.hosts if host.name not in known]
        yield from ({"event": what, "host": name} for name in hosts)
        links_of_both = [link for link in one.links if known.issuperset(link.ends)]
        there = {link.name for link in staying_links(one, other)}
        yield from ({"event": what, "link": link.name} for link in links_of_both if link.name not in there)


def _configure(lab: Lab, record: Record, before: Plan, started: Started) -> None:
    had = {machine.name for machine in before.machines}
    on = lab.machines_on(record)
    booted = [machine for machine in on if machine.name in started]
    links.set_wires(lab, record, booted)

    def configure(machine: Host | Switch) -> None:
        if machine.name in started:
            lifecycle.configure(lab, machine, record)
        else:
            links.run_script(lab.provider, machine, interfaces.script_again(before, lab.plan, machine))

    lab.work_on(on, configure)
    for machine in booted:
        if isinstance(machine, Switch):
            lifecycle.take_step(lab, machine, "ask_controller")
        else:
            if machine.name not in had:
                provisioning.copy_files(lab, machine)
            provisioning.run_commands(lab, machine)

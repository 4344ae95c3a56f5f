"""Measures a lab for its certificate, in less than ten seconds for a chain of six hosts.

It reads the settings of every host back, and measures `round_trips` and `losses` of every link and of paths that cover
all links, and the `rates` of every link.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from minigts import lab as labs
from minigts.fidelity import kept_certificate, losses, rates, round_trips, sample, shown_settings
from minigts.fidelity.certificate import (
    Certificate,
    CertificateRow,
    settings_row,
)
from minigts.fidelity.host_load import recording, taints
from minigts.fidelity.sample import Extent
from minigts.lab import Lab, Record, current, link_states, shown_links
from minigts.machine.progress import Progress
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.plan.plan import Plan

BUDGET_S = 7.5
"""How many seconds after the beginning nothing is measured again, so that a certificate takes at most ten seconds; on a
machine that stays busy it says so. In virtual time only a rate is measured again, and for longer."""


def certify(lab: Lab, say: Progress, *, bringing_up: bool = False, extent: Extent = "full") -> Certificate:
    """Measure the lab against its plan and later changes of its links, and write certificate.json to its run
    directory. A `quick` one measures a sample of the links, and names it. Raises what `Provider.run` raises.

    Nothing is set. A link that is cut is named; neither it nor a path over it is measured. At the end links that use
    random numbers begin them anew, unless a host's settings differ from the plan: in a lab that has just come up the
    same ones, as if nothing had been sent, and later those of another setting.

    A lab is calibrated again only while it is being brought up, and if round trips are shorter than declared because
    the machine was busier during calibration.

    In virtual time everything is measured once, as it would be the same again, and no load is recorded.
    """
    started_s = lab.provider.now_s()
    with recording(lab.provider.processes(), lab.plan.time) as machine:
        in_time = _within(BUDGET_S)
        record = lab.read_record()
        as_set = current.current_lab(lab, record)
        every = labs.used_links(as_set.plan, record)
        whole = every if extent == "full" else sample.choose_links(every)
        sources, paths = (None, None) if whole == every else (sample.SOURCES, sample.PATHS)
        over = round_trips.covering(labs.whole_paths(as_set.plan, record, sources))[:paths]
        answers = tuple(round_trips.rows(as_set, whole, over, say, in_time))
        if bringing_up and current.link_carrier(lab) is None and any(row.too_fast for row in answers):
            say("certificate: faster than declared; the emulator's own latency, again")
            labs.calibrate(lab, bringing_up=True)
            record = lab.read_record()
            answers = tuple(round_trips.rows(as_set, whole, over, say, in_time))
        set_so = tuple(settings(lab, say))
        answers = round_trips.explained_rows(as_set.plan, whole, over, answers)
        dumb = frozenset(row.subject for row in answers if row.quantity == "RTT" and row.measured is None)
        rows = (
            *set_so,
            *answers,
            *losses.rows(as_set, whole, say, dumb),
            *rates.rows(as_set, whole, say, in_time, dumb),
        )
    record = lab.read_record()  # somebody may have set links meanwhile
    if current.drawing(lab.plan, record) and all(row.ok for row in set_so):
        if bringing_up and not record.times_set and not record.altered:
            labs.reshape(lab, record)
        else:
            labs.draw_next(lab)
    certificate = Certificate(
        lab=lab.name,
        provider=record.provider,
        measured_at=datetime.now(UTC),
        emulator_overhead_ms=record.emulator_overhead_ms,
        rows=rows,
        seconds=round(lab.provider.now_s() - started_s, 2),
        busy=taints(machine.load),
        cut=kept_certificate.unmeasured_links(lab.plan, record),
        off=_off(lab.plan, record),
        changed=kept_certificate.change_words(lab.plan, record),
        storm=tuple(link_states.storms(lab)),
        kernels={each.name: each.kernel for each in lab.plan.machines if each.kernel},
        sample=() if whole == every else tuple(link.name for link in whole),
        links=0 if whole == every else len(every),
    )
    kept_certificate.keep(lab, certificate)
    return certificate


def certificate_after_up(lab: Lab, say: Progress) -> Certificate:
    """The certificate of a lab that `up` has returned: the present one if it still holds, otherwise a new one."""
    return kept_certificate.valid_certificate(lab) or certify(
        lab, say, bringing_up=not (lab.rundir / kept_certificate.FILE).exists()
    )


def _within(seconds: float) -> round_trips.InTime:
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() < deadline


def settings(lab: Lab, say: Progress) -> Iterator[CertificateRow]:
    """A row for each machine: how its kernel's settings, and the wires of its links, differ from the plan."""
    say("certificate: reading back what is set")
    record, wires = lab.read_record(), shown_links.read_wires(lab)

    def row_of(machine: Host | Switch) -> CertificateRow:
        shown = shown_settings.read_back(lab, machine, record, wires)
        different = shown_settings.differences(lab.plan, machine, record, shown)
        facts = [*(shown.fact(port) for port in machine.ports), *shown.facts_of_kernel]
        return settings_row(machine.name, different, facts)

    yield from lab.work_through(lab.machines_on(record), row_of).values()


def _off(plan: Plan, record: Record) -> dict[str, str]:
    """For links that are not measured though nobody has cut them: which of their machines is off or paused, or why
    frames do not go over them as the plan's paths do."""
    found = {name: why for name, why in labs.other_ways(plan, record).items() if name not in record.cut}
    for link in plan.links:
        silent = [name for name in link.ends if name in record.silent]
        if silent and link.name not in record.cut:
            found[link.name] = " and ".join(f"{name} is {'off' if name in record.off else 'paused'}" for name in silent)
    return found

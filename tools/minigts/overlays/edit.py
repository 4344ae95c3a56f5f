"""Adding and removing hosts and links of a lab with an overlay: all hosts leave it first, and join it again. A policy
holds on: that of a host that is gone is no rule, and a new host is in no group."""

from __future__ import annotations

from minigts.errors import InputError
from minigts.lab import Lab, Record, edit
from minigts.lab.edit import Started
from minigts.machine.progress import Progress
from minigts.overlays.lifecycle import follow, join, leave, require_fit
from minigts.overlays.phases import FILE, Joined, joined_overlay
from minigts.overlays.teams import UNDERLAYS
from minigts.topology.plan.plan import Plan


def alter(lab: Lab, after: Plan, progress: Progress, *, altered: bool = True) -> tuple[Lab, Started]:
    """As `lab.edit.alter`, with the overlay left before and joined after it; return the altered lab and the names
    of machines that were started. Raises InputError also where a machine is off and the overlay is not plain hosts, or
    the overlay does not fit the altered lab.
    """
    record = lab.read_record()
    require_alterable(lab, record)
    overlay, off = joined_overlay(lab), record.off
    if overlay is not None and not off:
        require_fit(after, overlay.name)
        leave(lab, progress, to_join_again=True)
    started = edit.alter(lab, after, progress, altered=altered)
    now = lab.reopened
    if overlay is not None and off:
        follow(now, overlay, progress)
    elif overlay is not None:
        join(now, overlay.name, progress)
    return now, started


def require_alterable(lab: Lab, record: Record) -> None:
    """Raises InputError or EnvironmentLacks where hosts and links cannot come and go now."""
    edit.require(lab, record)
    overlay, off = joined_overlay(lab), sorted(record.off)
    if overlay is not None and off and overlay.name not in UNDERLAYS:
        raise InputError(
            f"every host leaves overlay {overlay.name} and joins it anew when a host or link comes or goes, and "
            f"{off[0]} is off: minigts start {off[0]}"
        )


def finish(lab: Lab, progress: Progress) -> Lab:
    """As `lab.edit.finish`. Plain hosts are measuring ends again; another overlay has been left, and the caller joins
    it."""
    before = lab.read(FILE, Joined) if lab.read_record().becoming else None
    now = edit.finish(lab, progress)
    if before is not None:
        follow(now, before, progress)
    return now

"""A lab that hosts and links come into, and leave, with an overlay laid over it: that is left, and joined anew."""

from __future__ import annotations

from minigts.errors import InputError
from minigts.lab import Lab, Progress, altering
from minigts.lab.altering import Started
from minigts.overlays.life import follow, join, joined, leave
from minigts.overlays.teams import UNDERLAYS
from minigts.topology.plan import Plan


def alter(lab: Lab, after: Plan, progress: Progress) -> tuple[Lab, Started]:
    """See `lab.altering.alter`. The lab as it is then. Raises InputError too where a machine is off without which an
    overlay can be neither left nor joined; plain hosts do without.
    """
    record = lab.read_record()
    altering.require(lab, record)
    overlay, off = joined(lab), sorted(record.off)
    if overlay is not None and off and overlay.name not in UNDERLAYS:
        raise InputError(
            f"every host leaves overlay {overlay.name} and joins it anew when a host or link comes or goes, and "
            f"{off[0]} is off: minigts start {off[0]}"
        )
    if overlay is not None and not off:
        leave(lab, progress)
    started = altering.alter(lab, after, progress)
    now = lab.anew
    if overlay is not None and off:
        follow(now, overlay, progress)
    elif overlay is not None:
        join(now, overlay.name, progress)
    return now, started

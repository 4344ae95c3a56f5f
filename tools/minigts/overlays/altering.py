"""A lab that hosts and links come into, and leave, with an overlay laid over it: that is left, and joined anew."""

from __future__ import annotations

from minigts.lab import Lab, Progress, altering
from minigts.lab.altering import Started
from minigts.overlays.life import join, joined, leave
from minigts.topology.plan import Plan


def alter(lab: Lab, after: Plan, progress: Progress) -> tuple[Lab, Started]:
    """See `lab.altering.alter`. The lab as it is then."""
    altering.require(lab)
    overlay = joined(lab)
    if overlay is not None:
        leave(lab, progress)
    started = altering.alter(lab, after, progress)
    now = lab.anew
    if overlay is not None:
        join(now, overlay.name, progress)
    return now, started

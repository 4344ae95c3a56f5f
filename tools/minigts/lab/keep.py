"""A kept lab: none of its processes runs, and its hosts' disks wait in its run directory for the next `up`.

Its record says `kept` once the disks are written out, before any process is ended. So when keeping it or bringing it up
again is killed, the next `up` begins with its disks as after a power cut, and `down` removes everything.
"""

from __future__ import annotations

from collections.abc import Iterable

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import own_kernels
from minigts.lab.lab import Lab
from minigts.lab.record import KEPT, Record
from minigts.lab.rundir import exclusive, require_own
from minigts.machine import sparse
from minigts.machine.progress import Progress
from minigts.providers.base import KeepsDisks
from minigts.topology.plan.plan import Plan

CERTIFICATE = paths.CERTIFICATE
"""The certificate's file in the run directory (fidelity/kept_certificate.py), which holds as long as the hosts run."""


def keep(lab: Lab, progress: Progress) -> int:
    """End a lab, but keep its hosts' disks and its records for the next `up`; return the size of the disks in bytes.

    Hosts end once everything that they wrote is on their disks. On a kept lab this completes an interrupted `keep`.
    Raises EnvironmentLacks when the provider cannot keep disks, InputError for a lab that was never complete,
    HostFailed when the lab's time can no longer be read.
    """
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        record = lab.read_record()
        provider = keeping(lab, record)
        if record.becoming:
            raise InputError(f"lab {lab.name} is half altered: minigts up TOPOLOGY goes on with that")
        if record.altered:
            why = "hosts or links were added or removed, so it could not be brought up by its topology"
            raise InputError(f"lab {lab.name} cannot be kept: {why}; minigts save NAME and minigts restore NAME can")
        progress("writing the hosts' disks out")
        with provider.frozen():
            if record.state != KEPT:
                provider.note(lab.rundir)
                lab.write(kept_record(lab.plan, record), record)
            lab.provider.down()
        files = provider.disks().values()
        for file in files:
            sparse.settle(file)
        return sum(map(sparse.occupied_bytes, files))


def keeping(lab: Lab, record: Record) -> KeepsDisks:
    """The lab's provider, if it can keep the lab. Raises EnvironmentLacks; InputError for a lab that was never complete
    or has a paused host."""
    if record.state == "starting":
        raise InputError(f"lab {lab.name} was never complete: there is nothing to keep; minigts down {lab.name}")
    if not isinstance(lab.provider, KeepsDisks):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot keep its hosts' disks")
    own_kernels.require_of_all(lab.plan, "cannot be kept, since what they have written is in memory")
    if paused := sorted(record.paused):
        raise InputError(f"{paused[0]} is paused, so its disk cannot be written out: minigts resume {paused[0]}")
    return lab.provider


def kept_record(plan: Plan, record: Record) -> Record:
    """The record of a kept lab: as its hosts come up, each has to join the overlay again."""
    hosts = frozenset(host.name for host in plan.hosts)
    nothing: frozenset[str] = frozenset()
    return record.model_copy(update={"state": KEPT, "unsettled": nothing, "off": nothing, "unjoined": hosts})


def disk_bytes(lab: Lab) -> int | None:
    """The size of a lab's disks in bytes, without holes; None where the provider keeps no disks."""
    provider = lab.provider
    return sum(map(sparse.occupied_bytes, provider.disks().values())) if isinstance(provider, KeepsDisks) else None


def running(labs: Iterable[Lab]) -> list[Lab]:
    """The labs that are not kept: they run, or have failed."""
    return [lab for lab in labs if lab.read_state() != KEPT]


def require_same(kept: Lab, record: Record, wanted: Lab) -> None:
    """Raises InputError unless the kept lab has the plan, time and provider of `wanted`; `record` is the kept lab's."""
    if record.provider != wanted.provider.name:
        difference = f"on provider {record.provider}, not on {wanted.provider.name}"
    elif kept.time != wanted.time:
        difference = f"in {kept.time} time, not in {wanted.time} time"
    elif not kept.plan.makes_same_lab(wanted.plan):
        difference = "with another plan"
    else:
        return
    raise InputError(
        f"lab {kept.name} is kept {difference}, and its disks fit no other: bring it up as it was, remove them with "
        f"minigts down {kept.name}, or choose another name with --lab NAME"
    )

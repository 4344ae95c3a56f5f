"""A lab that is kept: nothing of it runs, and its hosts' disks wait in its run directory for the next `up`.

It is kept from the moment at which its record says so: when the disks are written out, and before anything is ended.
So whatever is killed while it is being kept, or while it comes up again, the next `up` begins with its disks, as after
a power cut, and `down` takes all away.
"""

from __future__ import annotations

from collections.abc import Iterable

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab.record import KEPT, Lab, Progress, Record, exclusive, require_own
from minigts.machine import sparse
from minigts.providers.base import Keeps
from minigts.topology.plan import Plan

CERTIFICATE = paths.CERTIFICATE
"""What was measured of a lab in its run directory (fidelity/measure.py): true as long as its hosts run."""


def keep(lab: Lab, progress: Progress) -> int:
    """End a lab, and leave its hosts' disks, with what is recorded of it, for the next `up`; what they take, in bytes.

    What runs on a host ends when all that it has written is on its disk. On a lab that is kept already this finishes
    what was broken off. Raises EnvironmentLacks when the provider cannot, InputError for a lab that was never complete,
    HostFailed when its time cannot be known any more.
    """
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        record = lab.read_record()
        provider = keeping(lab, record)
        if record.altered:
            why = "hosts or links were added or removed, so it could not be brought up by its topology"
            raise InputError(f"lab {lab.name} cannot be kept: {why}; minigts save NAME and minigts restore NAME can")
        progress("writing the hosts' disks out")
        with provider.standstill():
            if record.state != KEPT:
                provider.note(lab.rundir)
                lab.write(as_kept(lab.plan, record), record)
            lab.provider.down()
        files = provider.disks().values()
        for file in files:
            sparse.settle(file)
        return sum(map(sparse.occupied_bytes, files))


def keeping(lab: Lab, record: Record) -> Keeps:
    """The lab's provider, which can keep it. Raises EnvironmentLacks, and InputError for a lab that is half made."""
    if record.state == "starting":
        raise InputError(f"lab {lab.name} was never complete: there is nothing to keep; minigts down {lab.name}")
    if not isinstance(lab.provider, Keeps):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot keep its hosts' disks")
    if paused := sorted(record.paused):
        raise InputError(f"{paused[0]} is paused, so its disk cannot be written out: minigts resume {paused[0]}")
    return lab.provider


def as_kept(plan: Plan, record: Record) -> Record:
    """The record for the time that nothing of it runs: whoever brings it up has to join every host to its overlay."""
    hosts = frozenset(host.name for host in plan.hosts)
    nothing: frozenset[str] = frozenset()
    return record.model_copy(update={"state": KEPT, "unsettled": nothing, "off": nothing, "unjoined": hosts})


def disk_bytes(lab: Lab) -> int | None:
    """What the disks of a lab take, holes not counted; None with a provider that does not say."""
    provider = lab.provider
    return sum(map(sparse.occupied_bytes, provider.disks().values())) if isinstance(provider, Keeps) else None


def running(labs: Iterable[Lab]) -> list[Lab]:
    """Those that are not kept: they run, or did."""
    return [lab for lab in labs if lab.read_state() != KEPT]


def require_same(kept: Lab, record: Record, wanted: Lab) -> None:
    """Raises InputError unless a kept lab, whose record this is, is of the plan that is wanted, on its provider."""
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

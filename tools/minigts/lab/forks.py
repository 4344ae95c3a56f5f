"""Forks: a lab that is up becomes two at one moment of its time, with all that its hosts have in memory and on disk.

The other lab has a name and a run directory of its own, and everything that works on a lab works on it. Both go on from
that moment as if each were the only one; with a seed, the other one's random numbers are others from then on. It ends
with its origin at the latest (docs/decisions/forks.md).
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Annotated

from pydantic import Field

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError, noting_failures
from minigts.lab import events, lifecycle, links
from minigts.lab.lab import PLAN_LIMIT_BYTES, Lab
from minigts.lab.record import RECORD
from minigts.lab.rundir import all_labs, exclusive, lab_named, require_own
from minigts.providers import registry
from minigts.providers.base import Forks

HIGHEST_SEED = 2**63 - 1
Seed = Annotated[int, Field(ge=0, le=HIGHEST_SEED)]
LEFT_OUT = frozenset({RECORD, paths.LAUNCH, paths.SUPERVISOR, paths.CLOCK, paths.KERNELS})
"""Files that are not copied: RECORD is written last; the others are of processes that run."""


def fork(origin: Lab, name: str, seed: int = 0) -> Lab:
    """Fork a lab that is up, as the new lab `name`; the two go on. With a seed of 0 both have one course.

    No time passes for either. Raises InputError when the name or the seed is not valid, or there is a lab of that name;
    EnvironmentLacks when the provider cannot fork labs; HostFailed.
    """
    rundir = lab_named(name).rundir
    require_own(rundir)
    lifecycle.refuse_long_path(rundir)
    if not 0 <= seed <= HIGHEST_SEED:
        raise InputError(f"seed {seed}: write a whole number from 0 to {HIGHEST_SEED}; 0 changes nothing")
    if rundir == origin.rundir:
        raise InputError(f"the fork of lab {name} needs another name")
    with ExitStack() as locks:
        for each in sorted((origin.rundir, rundir)):  # one order, so that no two commands wait for each other
            locks.enter_context(exclusive(each))
        record = origin.read_record()
        if record.state != "up" or record.becoming:
            raise InputError(f"lab {origin.name} is not up, or half altered: only a lab that is up forks")
        provider = origin.provider
        if not isinstance(provider, Forks):
            raise EnvironmentLacks(
                f"a lab of provider {provider.name} in {origin.time} time does not fork; labs of uml in virtual time do"
            )
        other = Lab.known(rundir, origin.plan, registry.make(provider.name, rundir, origin.time))
        if other.read_state() in ("up", "kept"):
            raise InputError(f"there is a lab {name}: take it down with minigts down {name}, or choose another name")
        lifecycle.begin_anew(other)
        try:
            provider.fork(origin.plan, rundir, seed)
            _copy_records(origin, other)
            if seed:
                ways = [(link.name, end) for link in origin.plan.links for end in link.ends]
                record = record.counting(ways, seed)
                links.set_wires(other, record, origin.plan.machines)
            other.write(record, record)
        except BaseException as error:
            with noting_failures(error):
                lifecycle.end_and_remove(other)
            raise
        other.note({"event": "fork", "of": origin.name, "seed": seed})
    return other


def next_fork(origin: str) -> str:
    """A name that no lab has, of that lab's and a number: `pair.1`."""
    taken = {lab.name for lab in all_labs()}
    return next(name for number in itertools.count(1) if (name := f"{origin}.{number}") not in taken)


def _copy_records(origin: Lab, other: Lab) -> None:
    for file in sorted((*origin.rundir.glob("*.json"), origin.rundir / events.FILE)):
        copy = other.rundir / file.name
        if file.name not in LEFT_OUT and file.is_file() and not file.is_symlink() and not copy.exists():
            paths.write_whole(copy, paths.read_whole(file, PLAN_LIMIT_BYTES))

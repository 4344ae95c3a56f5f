"""How many labs of one plan this machine has room for, and what bounds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from minigts.errors import InputError
from minigts.machine import memory, tasks
from minigts.providers.uml import demand
from minigts.topology.plan import Plan
from minigts.topology.time import Time

TASKS_OF_KERNEL = 9
"""Processes and threads outside that a kernel takes, with its share of the supervisor and the clock: what descends from
a lab's supervisor, which `bench/run memory` counts. Each program that runs on a host is one more."""
SPARE = 1.2
"""For what experiments run on hosts."""

CARRIED_MBIT: Mapping[int, float] = {20: 500.0}
"""In real time, up to so many hosts, the highest rate of links that was tried and found within its tolerances, by
`bench/run carries --rates 50 100 200 500 --runs 2` on two cores: of 24 labs of 2, 6 and 20 hosts 21 were within, and of
the highest rate all. More was not tried."""


MOST_LINKS: Mapping[Time, int] = {"virtual": 43, "real": 48}
"""Of one machine. In virtual time a kernel has interrupts for no more devices (NR_IRQS of arch/um is 64); in real time
its command line has no room for many more (COMMAND_LINE_SIZE, 4096 bytes). Two hosts with so many links between them
came up, and with 44 and 52 they did not."""


def require_ports(plan: Plan) -> None:
    """Raises InputError for a machine with more links than a kernel can have."""
    most = MOST_LINKS[plan.time]
    ways_out = {host.name for host in plan.ways_out}
    counts = {machine.name: len(machine.ports) + (machine.name in ways_out) for machine in plan.machines}
    name, count = max(counts.items(), key=lambda one: one[1], default=("", 0))
    if count > most:
        raise InputError(
            f"{name} has {count} links, and a machine of provider uml in {plan.time} time has room for {most} at the "
            "most: spread them over several machines"
        )


@dataclass(frozen=True)
class Bound:
    """What one lab takes of something, and what there is of it: free now, and if nothing else ran."""

    by: str
    unit: Literal["MB", "processes and threads"]
    of_a_lab: int
    free: int
    whole: int

    @property
    def labs(self) -> int:
        """That fit now, beside what runs."""
        return self.free // self.of_a_lab

    @property
    def labs_at_most(self) -> int:
        """That would fit if nothing else ran."""
        return self.whole // self.of_a_lab


def bounds(
    plan: Plan,
    overlay: str,
    of_memory: Sequence[memory.Limit] | None = None,
    of_tasks: Sequence[tasks.Limit] | None = None,
) -> list[Bound]:
    """Of labs of this plan with this overlay, what leaves the fewest first. The limits are this machine's now."""
    kernels = demand.of_plan(plan)
    takes_mb = sum(kernel.takes_mb(overlay) for kernel in kernels)
    takes_tasks = math.ceil(len(kernels) * TASKS_OF_KERNEL * SPARE)
    found = [
        *(
            Bound(limit.name, "MB", takes_mb, limit.free_mb, limit.whole_mb)
            for limit in (memory.limits() if of_memory is None else of_memory)
        ),
        *(
            Bound(limit.name, "processes and threads", takes_tasks, limit.free, limit.whole)
            for limit in (tasks.limits() if of_tasks is None else of_tasks)
        ),
    ]
    return sorted(found, key=lambda bound: bound.labs)


def foresight(plan: Plan, overlay: str, found: Sequence[Bound] | None = None) -> tuple[str, ...]:
    """How many labs of the plan find room now, and in real time what of it is beyond what was seen to be carried.

    Raises InputError for a plan of which no lab can come up.
    """
    require_ports(plan)
    return tuple(_foresight(plan, overlay, bounds(plan, overlay) if found is None else found))


def _foresight(plan: Plan, overlay: str, found: Sequence[Bound]) -> Iterator[str]:
    if found:
        least, laid = found[0], "" if overlay == demand.BARE else f" with {overlay}"
        labs = f"{least.labs} labs of it{laid} fit" if least.labs != 1 else f"one lab of it{laid} fits"
        takes = f"one takes {least.of_a_lab} of {least.free} {least.unit} that are free, by {least.by}"
        yield f"{labs if least.labs else f'no lab of it{laid} fits'} here now: {takes}"
    if plan.time == "virtual":
        return
    hosts = len(plan.machines)
    carried = min((rate for most, rate in CARRIED_MBIT.items() if most >= hosts), default=None)
    fastest = max((way.rate_mbit or math.inf for link in plan.links for way in link.ways), default=0.0)
    known = (
        f"certificates of up to {max(CARRIED_MBIT)} hosts" if carried is None else f"links of up to {carried:g} Mbit/s"
    )
    if carried is None or fastest > carried:
        asked = f"{hosts} hosts" if carried is None else "no rate" if fastest == math.inf else f"{fastest:g} Mbit/s"
        yield (
            f"in real time {known} were within tolerances on two cores, and this has {asked}: results may be of the "
            "processors; --time virtual carries it at whatever slowness"
        )

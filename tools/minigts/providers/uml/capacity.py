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
"""Processes and threads of this machine for each kernel, with its share of the supervisor and the clock: descendants of
a lab's supervisor, as `bench/run memory` counts them. Each program that runs on a host is one more."""
SPARE = 1.2
"""The factor for the programs that experiments run on hosts."""

CARRIED_MBIT: Mapping[int, float] = {20: 500.0}
"""The highest rate of links, in Mbit/s, that was within tolerance in real time, by the largest number of hosts tried:
`bench/run carries --rates 50 100 200 500 --runs 2` on two cores. Of 24 labs of 2, 6 and 20 hosts 21 were within
tolerance, and all of those with the highest rate. Higher rates were not tried."""


MOST_LINKS: Mapping[Time, int] = {"virtual": 43, "real": 48}
"""The most links of one machine. In virtual time a kernel lacks interrupts for more devices (NR_IRQS of arch/um is 64);
in real time its command line has no room for many more (COMMAND_LINE_SIZE, 4096 bytes). Two hosts with so many links
between them came up; with 44 in virtual time and 52 in real time they did not."""


def require_ports(plan: Plan) -> None:
    """Raise InputError for a machine with more links than a kernel can have."""
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
    """What one lab needs under one limit, what is free under it now, and what would be free if nothing else ran."""

    by: str
    unit: Literal["MB", "processes and threads"]
    of_a_lab: int
    free: int
    whole: int

    @property
    def labs(self) -> int:
        """How many such labs fit now, besides what runs already."""
        return self.free // self.of_a_lab

    @property
    def labs_at_most(self) -> int:
        """How many such labs would fit if nothing else ran."""
        return self.whole // self.of_a_lab


def bounds(
    plan: Plan,
    overlay: str,
    of_memory: Sequence[memory.Limit] | None = None,
    of_tasks: Sequence[tasks.Limit] | None = None,
) -> list[Bound]:
    """The bounds on labs of this plan with this overlay, the one with room for the fewest labs first. Without
    `of_memory` and `of_tasks` these are the present limits of this machine."""
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
    """One sentence on how many labs of the plan fit now, and, in real time, one if it exceeds what was measured.

    Raises InputError for a plan of which no lab can come up.
    """
    require_ports(plan)
    return tuple(_foresight(plan, overlay, bounds(plan, overlay) if found is None else found))


def _foresight(plan: Plan, overlay: str, found: Sequence[Bound]) -> Iterator[str]:
    if found:
        least, laid = found[0], "" if overlay == demand.BARE else f" with {overlay}"
        labs = f"{least.labs} such labs" if least.labs > 1 else "one such lab" if least.labs else "no such lab"
        yield f"room for {labs}{laid}: {least.of_a_lab} {least.unit} each, {least.free} free by {least.by}"
    if plan.time == "virtual":
        return
    hosts = len(plan.machines)
    carried = min((rate for most, rate in CARRIED_MBIT.items() if most >= hosts), default=None)
    fastest = max((way.rate_mbit or math.inf for link in plan.links for way in link.ways), default=0.0)
    known = (
        f"certificates of up to {max(CARRIED_MBIT)} hosts" if carried is None else f"links of up to {carried:g} Mbit/s"
    )
    if carried is None or fastest > carried:
        asked = f"{fastest:g} Mbit/s" if fastest < math.inf else "links without a rate"
        asked = f"{hosts} hosts" if carried is None else asked
        yield (
            f"in real time {known} were within tolerance on two cores, and this plan has {asked}: processors may limit "
            "its results; --time virtual is exact, however slow"
        )

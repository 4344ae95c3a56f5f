"""How many labs of one plan this machine has room for, and what bounds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from minigts.machine import memory, tasks
from minigts.providers.uml import demand
from minigts.topology.plan import Plan

TASKS_OF_KERNEL = 9
"""Processes and threads outside that a kernel takes, with its share of the supervisor and the clock: what descends from
a lab's supervisor, which `bench/run memory` counts. Each program that runs on a host is one more."""


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
    takes_tasks = math.ceil(len(kernels) * TASKS_OF_KERNEL * demand.SPARE)
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

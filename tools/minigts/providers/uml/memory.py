"""How much memory a lab of User-Mode Linux kernels takes, whether this machine has it, and how many labs of one plan
find room here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from minigts.errors import EnvironmentLacks, InputError
from minigts.machine import limits
from minigts.machine import limits as machine_limits
from minigts.machine.limits import MemoryLimit
from minigts.providers.uml import light
from minigts.providers.uml.run.command_line import CACHE_MB
from minigts.topology.plan.elements import CACHED
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

BARE = "none"
"""The overlay that starts nothing on a host."""
MEASURED_MB = {
    BARE: 26,
    "none-v6": 26,
    "bridge": 102,
    "calico": 97,
    "mesh": 98,
    "romana": 97,
    "ovs": 103,
    "swarm": 109,
    "libnetwork-etcd": 171,
    "kubernetes": 165,
    "kubernetes-flannel": 206,
}
"""Memory of this machine for a host with `memory: 512MB`, in MB of 2^20 bytes: its memory file, its processes' private
memory, and its share of the supervisor. Measured by

    bench/run memory --overlays none bridge calico mesh romana ovs swarm libnetwork-etcd

on six hosts of chain6, a lab for each, ten seconds after Docker, the overlay and a container were up on every host.
Those of `kubernetes` are the larger worker's with two pods of the user's, where hosts have the programs from their
start. With SPARE_MEMORY they have room for what each node takes while all install at once, 208 to 213 MB:

    bench/run cluster --nodes 6 --pods 2 --worker-mb 512 --plane-mb 1000 --overlay kubernetes

and, for the latter, `df /dev/shm` twice a second meanwhile.
"""
LEADER_MB = {"kubernetes": 650}
"""The same for the first host of each network, where it takes more: a control plane with up to 48 nodes. With 100 it
has 789 MB, for which SPARE_MEMORY leaves room."""
DEAREST_MB = 171
"""The figure for overlays that were not measured: the largest that was. A variant of one that takes more has that."""
LIGHT_MB = 1.5
"""Memory of this machine for a light host with nothing but its own addresses, beside what a kernel takes. Measured with
a hundred in one kernel, which had 149 MB."""
MEASURED_AT_MB = 512
SPARE_MEMORY = 1.3
"""The factor for what a host needs only while it starts, and for the programs of experiments."""
KERNEL_MB = 20
"""The most that a host needs besides its own memory: for its kernel, and for its programs' stub processes."""
KEPT_MB = CACHE_MB + 1
"""What a disk's cache takes beside the host's own memory: its blocks, and 16 bytes for each (struct ubd_cached)."""
DESCRIBES = 64
"""How many pages one page of a kernel's memory describes, all from the start: 64 bytes for each page of 4096."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is to run. A host has an overlay, a leader is the first host of one, a switch has none; a `whole`
    kernel will use all of its memory."""

    name: str
    memory_mb: int
    kind: Literal["host", "leader", "switch", "whole", "shared"]
    has_cache: bool = False
    """Whether its disk has a cache, which fills with what is written."""
    hosts: int = 1
    """How many hosts have it: several light ones share one."""

    def takes_mb(self, overlay: str) -> int:
        """MB of this machine's memory with this overlay: the measured figure, at most the kernel's own memory and
        KERNEL_MB, and what the disk's cache takes."""
        most_mb, cache_mb = self.memory_mb + KERNEL_MB, KEPT_MB if self.has_cache else 0
        if self.kind == "whole":
            return most_mb + cache_mb
        if self.kind == "shared":
            return min(most_mb, round((MEASURED_MB[BARE] + LIGHT_MB * self.hosts) * SPARE_MEMORY))
        measured_mb = _measured_mb(BARE if self.kind == "switch" else overlay, self.kind == "leader")
        described_mb = max(0, self.memory_mb - MEASURED_AT_MB) // DESCRIBES
        return min(most_mb, round(measured_mb * SPARE_MEMORY) + described_mb) + cache_mb


def _measured_mb(overlay: str, of_a_leader: bool) -> int:
    family = overlay.partition("-")[0]
    if of_a_leader and family in LEADER_MB:
        return LEADER_MB[family]
    return MEASURED_MB.get(overlay) or max(DEAREST_MB, MEASURED_MB.get(family, 0))


def kernels_of(plan: Plan) -> tuple[Kernel, ...]:
    """A kernel for every host and every switch, and those that light hosts share."""
    leaders = {group.hosts[0] for group in plan.groups} or {host.name for host in plan.hosts[:1]}
    caches = {host.name for host in plan.hosts if host.disk == CACHED}
    sharing = plan.sharing
    own = [
        Kernel(
            machine.name,
            machine.memory_mb,
            "leader" if machine.name in leaders else machine.role,
            machine.name in caches,
        )
        for machine in plan.machines
        if machine.name not in sharing
    ]
    shared = (
        Kernel(light.kernel_name(number), light.kernel_mb(size), "shared", hosts=size)
        for number, size in enumerate(light.sizes(len(sharing)))
    )
    return (*own, *shared)


def require_memory(
    kernels: Sequence[Kernel], overlays: Sequence[str], limits: Sequence[MemoryLimit] | None = None
) -> None:
    """Raise EnvironmentLacks unless the kernels fit with each of the overlays, which run one after another.

    `limits`, the least free first, are the present ones of this machine by default.
    """
    known = machine_limits.memory_limits() if limits is None else limits
    if not known or not kernels:
        return
    whole = min(known, key=lambda limit: limit.whole_mb)
    beyond = [kernel for kernel in kernels if kernel.memory_mb > whole.whole_mb]
    if beyond:
        raise EnvironmentLacks(
            f"{_some([kernel.name for kernel in beyond])}: `memory: {beyond[0].memory_mb}MB` is more than this machine "
            f"has in total, {whole.whole_mb} MB by {whole.name}"
        )
    heaviest = max(overlays, key=lambda overlay: _together_mb(kernels, overlay))
    if _together_mb(kernels, heaviest) > known[0].free_mb:
        raise EnvironmentLacks(_too_little(kernels, heaviest, known[0]))


def _together_mb(kernels: Sequence[Kernel], overlay: str) -> int:
    return sum(kernel.takes_mb(overlay) for kernel in kernels)


def _too_little(kernels: Sequence[Kernel], overlay: str, limit: MemoryLimit) -> str:
    needed_mb, bare_mb = _together_mb(kernels, overlay), _together_mb(kernels, BARE)
    smaller = [replace(kernel, memory_mb=min(kernel.memory_mb, MEASURED_AT_MB)) for kernel in kernels]
    fitting = [f"{limit.free_mb * len(kernels) // needed_mb} hosts of this kind"]
    if _together_mb(smaller, overlay) <= limit.free_mb:
        fitting.append(f"`memory: {MEASURED_AT_MB}MB` for each")
    if bare_mb < needed_mb and bare_mb <= limit.free_mb:
        fitting.append(f"`--overlay {BARE}` ({bare_mb} MB)")
    laid = "" if overlay == BARE else f" with the overlay {overlay}"
    return (
        f"{len(kernels)} kernels{laid} need {needed_mb} MB of memory; "
        f"{limit.free_mb} MB are free by {limit.name}. What would fit: {', or '.join(fitting)}. "
        f"For more room: {limit.remedy}"
    )


def _some(names: Sequence[str], shown: int = 3) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


TASKS_OF_KERNEL = 9
"""Processes and threads of this machine for each kernel, with its share of the supervisor and the clock: descendants of
a lab's supervisor, as `bench/run memory` counts them. Each program that runs on a host is one more."""
SPARE_TASKS = 1.2
"""The factor for the programs that experiments run on hosts."""

CARRIED_MBIT: Mapping[int, float] = {20: 500.0}
"""The highest rate of links, in Mbit/s, that was within tolerance in real time, by the largest number of hosts tried;
50, 100, 200 and 500 Mbit/s were tried, on two cores. Of 24 labs of 2, 6 and 20 hosts 21 were within tolerance, and all
of those with the highest rate."""


MOST_LINKS: Mapping[Time, int] = {"virtual": 43, "real": 48}
"""The most links of one machine. In virtual time a kernel lacks interrupts for more devices (NR_IRQS of arch/um is 64);
in real time its command line has no room for many more (COMMAND_LINE_SIZE, 4096 bytes). Two hosts with so many links
between them came up; with 44 in virtual time and 52 in real time they did not."""


def require_ports(plan: Plan) -> None:
    """Raise InputError for a machine with more links than a kernel can have."""
    most = MOST_LINKS[plan.time]
    ways_out = {host.name for host in plan.ways_out}
    counts = {
        machine.name: len(machine.ports) + (machine.name in ways_out)
        for machine in plan.machines
        if machine.name not in plan.sharing
    }
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
    of_memory: Sequence[limits.MemoryLimit] | None = None,
    of_tasks: Sequence[limits.ProcessLimit] | None = None,
) -> list[Bound]:
    """The bounds on labs of this plan with this overlay, the one with room for the fewest labs first. Without
    `of_memory` and `of_tasks` these are the present limits of this machine."""
    kernels = kernels_of(plan)
    takes_mb = sum(kernel.takes_mb(overlay) for kernel in kernels)
    takes_tasks = math.ceil(len(kernels) * TASKS_OF_KERNEL * SPARE_TASKS)
    found = [
        *(
            Bound(limit.name, "MB", takes_mb, limit.free_mb, limit.whole_mb)
            for limit in (limits.memory_limits() if of_memory is None else of_memory)
        ),
        *(
            Bound(limit.name, "processes and threads", takes_tasks, limit.free, limit.whole)
            for limit in (limits.process_limits() if of_tasks is None else of_tasks)
        ),
    ]
    return sorted(found, key=lambda bound: bound.labs)


def forecast(plan: Plan, overlay: str, found: Sequence[Bound] | None = None) -> tuple[str, ...]:
    """One sentence on how many labs of the plan fit now, and, in real time, one if it exceeds what was measured.

    Raises InputError for a plan of which no lab can come up.
    """
    require_ports(plan)
    return tuple(_forecast(plan, overlay, bounds(plan, overlay) if found is None else found))


def _forecast(plan: Plan, overlay: str, found: Sequence[Bound]) -> Iterator[str]:
    if found:
        least, laid = found[0], "" if overlay == BARE else f" with {overlay}"
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

"""How much memory a lab of User-Mode Linux kernels needs, and whether this machine has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from minigts.errors import EnvironmentLacks
from minigts.machine import memory
from minigts.machine.memory import Limit
from minigts.topology.plan import Plan

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
}
"""Memory of this machine for a host with `memory: 512MB`, in MB of 2^20 bytes: its memory file, its processes' private
memory, and its share of the supervisor. Measured by

    bench/run memory --overlays none bridge calico mesh romana ovs swarm libnetwork-etcd

on six hosts of chain6, a lab for each, ten seconds after Docker, the overlay and a container were up on every host.
"""
DEAREST_MB = 171
"""The figure for overlays that were not measured: the largest that was."""
MEASURED_AT_MB = 512
SPARE = 1.3
"""The factor for what a host needs only while it starts, and for the programs of experiments."""
KERNEL_MB = 20
"""The most that a host needs besides its own memory: for its kernel, and for its programs' stub processes."""
DESCRIBES = 64
"""How many pages one page of a kernel's memory describes, all from the start: 64 bytes for each page of 4096."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is to run. A host has an overlay, a switch none; a `whole` kernel will use all of its memory."""

    name: str
    memory_mb: int
    kind: Literal["host", "switch", "whole"]

    def takes_mb(self, overlay: str) -> int:
        """MB of this machine's memory with this overlay: the measured figure, at most the kernel's own memory and
        KERNEL_MB."""
        most_mb = self.memory_mb + KERNEL_MB
        if self.kind == "whole":
            return most_mb
        measured_mb = MEASURED_MB.get(overlay if self.kind == "host" else BARE, DEAREST_MB)
        described_mb = max(0, self.memory_mb - MEASURED_AT_MB) // DESCRIBES
        return min(most_mb, round(measured_mb * SPARE) + described_mb)


def of_plan(plan: Plan) -> tuple[Kernel, ...]:
    """A kernel for every host and every switch."""
    return tuple(Kernel(machine.name, machine.memory_mb, machine.role) for machine in plan.machines)


def require(kernels: Sequence[Kernel], overlays: Sequence[str], limits: Sequence[Limit] | None = None) -> None:
    """Raise EnvironmentLacks unless the kernels fit with each of the overlays, which run one after another.

    `limits`, the least free first, are the present ones of this machine by default.
    """
    known = memory.limits() if limits is None else limits
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


def _too_little(kernels: Sequence[Kernel], overlay: str, limit: Limit) -> str:
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

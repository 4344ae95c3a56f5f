"""Light hosts: which kernels they share, and how they come to be in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from minigts.dataplane import names
from minigts.errors import InputError
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan.plan import Plan

MOST_IN_A_KERNEL = 125
"""How many light hosts share a kernel. Kernels run side by side, one on each of this machine's processors."""
MOST_TAGS = 4094
"""How many ports a trunk has room for: IEEE 802.1Q has so many VLANs."""
KERNEL_MB, HOST_MB = 192, 8
"""Memory of a kernel that light hosts share: for itself, and for each of them. It is what programs may use; a kernel
takes what is used (`memory.py`)."""
MAKE = ("/usr/lib/minigts/agent", "light")
MAKE_TIMEOUT_S = 600.0


def groups(hosts: Sequence[GuestKernel]) -> Iterator[tuple[GuestKernel, ...]]:
    """The light hosts that share a kernel: they start from one file system, with one kernel, and are few enough for one
    trunk. Those with many ports, which have most to do, are dealt out over all kernels. Raises InputError for a host
    with more ports than a trunk."""
    alike: dict[tuple[object, object], list[GuestKernel]] = {}
    for host in hosts:
        if len(host.ports) > MOST_TAGS:
            raise InputError(f"{host.name} has {len(host.ports)} links, and a light host has room for {MOST_TAGS}")
        alike.setdefault((host.base, host.kernel), []).append(host)
    for each in alike.values():
        ranked = sorted(range(len(each)), key=lambda index: -len(each[index].ports))
        kernels = len(sizes(len(each)))
        while any(
            sum(len(each[index].ports) for index in ranked[first::kernels]) > MOST_TAGS for first in range(kernels)
        ):
            kernels += 1
        yield from (tuple(each[index] for index in sorted(ranked[first::kernels])) for first in range(kernels))


def seats_of(machines: Sequence[GuestKernel], light: frozenset[str]) -> tuple[GuestKernel, ...]:
    """The machines, of which the light ones are within kernels that follow them. Raises InputError."""
    hosts = [machine for machine in machines if machine.name in light]
    numbers = 1 + max((machine.number for machine in machines), default=-1)
    seats: dict[str, GuestKernel] = {}
    kernels = []
    for index, group in enumerate(groups(hosts)):
        first = group[0]
        kernel = replace(
            first,
            name=kernel_name(index),
            memory_mb=kernel_mb(len(group)),
            ports=(),
            number=numbers + index,
            trunk=True,
        )
        kernels.append(kernel)
        tag = 1
        for host in group:
            ports = tuple(port._replace(tag=tag + each) for each, port in enumerate(host.ports))
            tag += len(ports)
            seats[host.name] = replace(host, ports=ports, within=kernel.name)
    return (*(seats.get(machine.name, machine) for machine in machines), *kernels)


def sizes(hosts: int) -> list[int]:
    """How many hosts each kernel has, as far as their number decides it."""
    kernels = ceil(hosts / MOST_IN_A_KERNEL)
    return [len(range(first, hosts, kernels)) for first in range(kernels)]


def kernel_name(index: int) -> str:
    """The name of a kernel that light hosts share, which no host can have."""
    return f"light.{index + 1}"


def kernel_mb(hosts: int) -> int:
    return KERNEL_MB + HOST_MB * hosts


def make(provider: AgentProvider, plan: Plan, launch: Launch, kernel: str) -> None:
    """Make the light hosts of a kernel that has come up."""
    if names.shares_hosts_file(plan):
        hosts_file = names.hosts_file(plan, plan.hosts[0]).encode()
        provider.run(kernel, ["sh", "-c", "cat >/etc/hosts"], timeout_s=MAKE_TIMEOUT_S, stdin=hosts_file)
    hosts = [
        {
            "name": host.name,
            "ports": [{"tag": port.tag, "name": port.name, "mac": port.mac, "mtu": port.mtu} for port in host.ports],
        }
        for host in launch.sharing(kernel)
    ]
    provider.run(kernel, MAKE, timeout_s=MAKE_TIMEOUT_S, stdin=json.dumps(hosts).encode())

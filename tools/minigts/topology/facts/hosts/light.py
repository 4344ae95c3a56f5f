"""Whether a host shares a kernel with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.language.problems import Finding
from minigts.topology.facts.hosts.cpus import DEFAULT_CPUS
from minigts.topology.facts.hosts.memory import DEFAULT_MEMORY_MB
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting, Misfit, PlannedNetwork
from minigts.topology.plan.elements import Host
from minigts.topology.sysctls import is_of_whole_kernel

WHY = "a light host shares its kernel, and `{}` needs one of its own"


def own_settings(host: Host) -> Iterator[str]:
    """The settings of a host that only one with a kernel of its own can have, as in a file."""
    if host.cpus != DEFAULT_CPUS:
        yield f"cpus: {host.cpus:g}"
    if host.memory_mb != DEFAULT_MEMORY_MB:
        yield f"memory: {host.memory_mb}MB"
    if host.disk:
        yield f"disk: {host.disk}"
    if host.processor is not None:
        yield "processor"
    if host.containers:
        yield "containers"
    yield from (f"sysctls: {each.name}" for each in host.sysctls if is_of_whole_kernel(each.name))


def _misfits(network: PlannedNetwork) -> Iterator[Misfit]:
    for host in network.hosts:
        if host.light and (found := next(own_settings(host), "")):
            yield Misfit(host.name, (), WHY.format(found))


def _resolved(written: bool, _host: Host, _hosts: Sequence[Host]) -> tuple[object, Sequence[Finding]]:
    """It is in the plan last, so that all that does not go with it is found with its line (`misfits`)."""
    return written, ()


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    if count := sum(host.light for host in hosts):
        yield f"{count} light hosts share kernels, as namespaces"


Light: TypeAlias = Annotated[
    Annotated[bool, *truth("the host shares a kernel with other light hosts")] | None,
    HostSetting(
        from_start=lambda host: host.light,
        resolved=_resolved,
        misfits=_misfits,
        sentences=_sentences,
        features=(
            Feature(
                name="light hosts",
                asks=lambda host: "light: true" if host.light else "",
                only="virtual",
                written=lambda value: value == "true",
                untimely="light hosts exist only in virtual time, and this lab runs in real time: leave `light` out",
                instead="leave `light` out",
            ),
        ),
        elsewhere=Elsewhere(
            what="light",
            why="every other format decides by itself whether hosts share a kernel",
            has=lambda host: host.light,
            lost=False,
        ),
        page="""\
optional, in [virtual time](#time) on `uml` · `true` or `false` · default: `false` · `light: true`

A light host shares a kernel with other light hosts, as containers do: it has network, processes, name and files of its
own, and no kernel. A thousand fit where a hundred hosts with kernels do ([light hosts](light-hosts.md) has figures, and
what is shared). Its links, addresses, routes, certificate, `exec`, `capture` and `link` are those of any other host.

What needs a kernel of its own is refused: `cpus`, `memory`, `disk`, `processor`, `containers`, an overlay, `net.core.*`
in `sysctls`; and, while the lab is up, `kill`, `pause`, `restart`, and to add or remove hosts and links. Light and other
hosts may be in one lab. `defaults: {host: {light: true}}` has all hosts be light.
""",
    ),
    Field(
        description="Whether the host shares a kernel with other light hosts, in virtual time on uml only. "
        "Default: false."
    ),
]

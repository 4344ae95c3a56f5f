"""Compares the cost and the accuracy of one topology on several providers, measured the same way.

Rounds alternate between the providers, so that changes of this machine affect all of them. In each round the lab is
brought up, measured over the longest path from its first host, and taken down.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from minigts import lab as labs
from minigts import overlays
from minigts.experiments.commands import underlay_mtu
from minigts.fidelity.host_load import recording
from minigts.foreign import parser_text
from minigts.judge.statistics import Estimate, estimate
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.machine.proc import PROC, family, shared_files_bytes
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.tools import iperf3_tcp, iperf3_udp
from minigts.tools.base import PathUnderTest
from minigts.tools.iperf3_tcp import TcpOptions
from minigts.tools.iperf3_udp import UdpOptions
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

Figure = tuple[str, str, float]
"""Quantity, unit and value."""
UDP_SHARES = (0.1, 0.5, 0.9)
"""The shares of the path's rate, or of UNLIMITED_MBIT where it has none, that UDP is offered at."""
UNLIMITED_MBIT = 100.0
PROBES = 200
UDP_S, TCP_S, SLOW_START_S = 2, 3, 1
MIB = 2**20


@dataclass(frozen=True)
class ProviderSample:
    """One figure of one round."""

    provider: str
    quantity: str
    unit: str
    value: float


@dataclass(frozen=True)
class ProviderComparison:
    """All samples; `absent` says why the other providers have none."""

    topology: str
    path: str
    rounds: int
    samples: tuple[ProviderSample, ...]
    absent: Mapping[str, str]

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(sample.provider for sample in self.samples))

    def rows(self) -> Iterator[tuple[str, str, dict[str, Estimate]]]:
        """The name, the unit, and the median with interval by provider of each quantity."""
        for quantity, unit in dict.fromkeys((sample.quantity, sample.unit) for sample in self.samples):
            own = [sample for sample in self.samples if sample.quantity == quantity]
            by_provider = {name: [one.value for one in own if one.provider == name] for name in self.providers}
            yield quantity, unit, {name: estimate(values) for name, values in by_provider.items() if values}


def absent(wanted: Sequence[str], time: Time = "real") -> dict[str, str]:
    """The providers of `wanted` that cannot run on this machine in that time, with the first reason."""
    lacking = {name: registry.make(name, FilePath(), time).missing() for name in wanted}
    return {name: reasons[0] for name, reasons in lacking.items() if reasons}


def compare(plan: Plan, wanted: Sequence[str], rounds: int, say: Progress) -> ProviderComparison:
    """Measure `plan` on the providers of `wanted` that work here. Raises what bringing a lab up raises."""
    missing = absent(wanted, plan.time)
    path = _longest(plan)
    samples: list[ProviderSample] = []
    for number in range(1, rounds + 1):
        for name in wanted:
            if name not in missing:
                say(f"round {number} of {rounds}: {name}")
                samples += _round(plan, name, path)
    return ProviderComparison(plan.name, f"{path.source}-{path.target}", rounds, tuple(samples), missing)


def _longest(plan: Plan) -> Path:
    """The path from the first host to the one that is most hops away."""
    own = [path for path in plan.paths if path.reachable and path.source == plan.hosts[0].name]
    return max(own, key=lambda path: path.hops)


def _round(plan: Plan, provider: str, path: Path) -> list[ProviderSample]:
    """One round on one provider. The lab's name has the process id, so that it disturbs no other lab."""
    name = f"compare-{provider}-{os.getpid()}"
    begun = time.monotonic()
    lab = labs.up(plan, provider, name, lambda _: None)
    seconds = time.monotonic() - begun
    try:
        figures = [("bring-up", "s", seconds), ("memory", "MiB", memory_mib(lab.provider.processes()))]
        figures += _measure(lab, path)
        return [ProviderSample(provider, *figure) for figure in figures]
    finally:
        labs.down(lab)


def _measure(lab: Lab, path: Path) -> Iterator[Figure]:
    ends = overlays.join(lab, overlays.UNDERLAY, lambda _: None)
    way = PathUnderTest(ends[path.target].address, ends[path.source].mtu, underlay_mtu(lab.plan), path)
    seen = probe(lab.provider, path.source, way.address, count=PROBES)
    yield "RTT off by", "ms", seen.median_ms - path.rtt_ms
    yield "RTT, 99th percentile off by", "ms", sorted(seen.rtts_ms)[len(seen.rtts_ms) * 99 // 100] - path.rtt_ms
    yield from traffic(lab, way, [share * (path.rate_mbit or UNLIMITED_MBIT) for share in UDP_SHARES])


def traffic(lab: Lab, way: PathUnderTest, offered_mbit: Iterable[float]) -> Iterator[Figure]:
    """Figures of TCP, then of UDP at each rate: what arrives, what is lost, and the processor time of the lab's
    processes for each megabit."""
    yield from _load(lab, way, "TCP", TcpOptions(duration=f"{TCP_S}s", omit=f"{SLOW_START_S}s"))
    for rate_mbit in offered_mbit:
        options = UdpOptions(duration=f"{UDP_S}s", rate=f"{rate_mbit:g}mbit", datagram="fit")
        yield from _load(lab, way, f"UDP at {rate_mbit:g} Mbit/s", options)


def _load(lab: Lab, way: PathUnderTest, name: str, options: TcpOptions | UdpOptions) -> Iterator[Figure]:
    tool = iperf3_tcp.TOOL if isinstance(options, TcpOptions) else iperf3_udp.TOOL
    argv = tool.argv(options, way)
    with recording(lab.provider.processes()) as machine:
        output = lab.provider.run(way.path.source, argv, timeout_s=60)
    measured = tool.read(parser_text(output.stdout), parser_text(output.stderr))
    yield f"{name}: arrives", "Mbit/s", measured.value
    if "loss_percent" in measured.extra:
        yield f"{name}: lost", "%", measured.extra["loss_percent"]
    load = machine.load
    sent_s = UDP_S if isinstance(options, UdpOptions) else TCP_S + SLOW_START_S
    if load is not None and measured.value:
        cpu_ms = 1000 * load.own_cores * load.seconds
        yield f"{name}: processor for each Mbit", "ms", cpu_ms / (measured.value * sent_s)


def memory_mib(roots: Sequence[int]) -> float:
    """The memory of a lab's processes in MiB: their proportional share, and in full the unlinked files in which a
    User-Mode Linux kernel keeps its memory, as its processes map only what they use now."""
    size, pids = 0, tuple(family(roots))
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            rollup = (PROC / str(pid) / "smaps_rollup").read_text()
            fields = {line.split(":")[0]: line.split() for line in rollup.splitlines()[1:]}
            size += (int(fields["Pss"][1]) - int(fields["Pss_Shmem"][1])) << 10
    return (size + shared_files_bytes(pids)) / MIB

"""What the experiment tests share: a chain, a small experiment, and a transport that replays recorded outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain as chained
from itertools import repeat
from pathlib import Path

from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix
from minigts.fidelity.host_load import HostLoad, LoadRecording
from minigts.overlays import Endpoint
from minigts.providers.base import CommandResult
from minigts.providers.real_time import RealTime
from minigts.results import manifest as manifests
from minigts.results.schema import Hardware, Manifest
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.elements import Host, HostPort, Link
from minigts.topology.plan.plan import Plan

RECORDED = Path(__file__).parent / "recorded"
SEGMENTS_MS = (21.75, 4.70, 41.58, 52.57, 40.63)
NAMES = ("ams", "bra", "lon", "mil", "par", "prg")

SMALL = """\
name: small
title: A small one
topology: topologies/chain6.yaml
overlays: [none, swarm]
seed: 7
repetitions: 2
measurements:
  - {name: latency, tool: netperf-rr, paths: [first-to-each, each-segment], options: {transactions: 7}}
  - {name: tcp, tool: iperf3-tcp, paths: [first-to-each], options: {duration: 2s, omit: 1s}}
  - {name: udp, tool: iperf3-udp, paths: [first-to-each], options: {duration: 1s, rate: 20mbit}}
claims:
  - latency: sum-of-segments
  - {throughput: falls-with-hops, of: tcp}
published:
  - {measurement: latency, source: figure 15, by_hops: [21.75, 26.45], by_segment: [21.75, 4.70]}
"""


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def chain(hosts: int = 3, rate_mbit: float | None = 100.0, routing: str = "routed") -> Plan:
    """The first `hosts` hosts of figure 15's chain, as the planner would lay them out where it matters here."""
    names, rtts = NAMES[:hosts], SEGMENTS_MS[: hosts - 1]
    links = tuple(
        Link(
            name=f"{names[i]}-{names[i + 1]}",
            index=i,
            ends=(names[i], names[i + 1]),
            subnet=f"10.0.{i}.0/24",
            rtt_ms=rtt,
            rate_mbit=rate_mbit,
            loss_percent=0.0,
        )
        for i, rtt in enumerate(rtts)
    )
    return Plan.model_validate(
        {
            "name": "chain",
            "description": "",
            "routing": routing,
            "overlay": "none",
            "hosts": [_host(i, name, links) for i, name in enumerate(names)],
            "links": links,
        }
    )


def _other(link: Link, name: str) -> str:
    return next(end for end in link.ends if end != name)


def _address(link: Link, name: str) -> str:
    return f"10.0.{link.index}.{NAMES.index(name) + 1}"


def _host(index: int, name: str, links: Sequence[Link]) -> Host:
    ports = tuple(
        HostPort(
            name=f"eth{number}",
            mac=f"02:00:00:00:{index:02x}:{number:02x}",
            address=_address(link, name),
            prefix=24,
            mtu=1500,
            link=link.name,
            peer_host=_other(link, name),
            peer_address=_address(link, _other(link, name)),
            outgoing=Shaping(),
            incoming=Shaping(),
        )
        for number, link in enumerate((link for link in links if name in link.ends), start=1)
    )
    return Host(
        name=name,
        index=index,
        location=None,
        cpus=1,
        memory_mb=512,
        address=f"10.255.0.{index + 1}",
        ports=ports,
    )


def small() -> Experiment:
    return parse(SMALL, "small.yaml")


def begin(directory: Path, experiment: Experiment, plan: Plan) -> None:
    """Write a manifest, as the command line does before the first sample."""
    manifest = Manifest(
        minigts="0.1.0",
        experiment=experiment,
        topology_sha256="0" * 64,
        plan=plan,
        provider="replay",
        machine=Hardware(cpu="none", cores=2, memory_mb=1024, kernel="6.1"),
        samples_planned=len(matrix(experiment, plan)),
        started="2026-11-21T11:00:00+00:00",
    )
    manifests.write(directory, manifest)


def endpoints(plan: Plan, overlay: str) -> Mapping[str, Endpoint]:
    mtu = 1500 if overlay == "none" else 1450
    return {host.name: Endpoint(host.name, host.address, mtu, ("in", overlay)) for host in plan.hosts}


Recorder = Callable[[], AbstractContextManager[LoadRecording]]


def recorder_of(*foreign_cores: float) -> Recorder:
    """Records of load by which others use so many processors, one sample after the other; then as the last, or none."""
    left = chained(foreign_cores, repeat(foreign_cores[-1] if foreign_cores else 0.0))

    @contextmanager
    def recording() -> Iterator[LoadRecording]:
        machine = LoadRecording()
        yield machine
        machine.load = host_load(foreign_cores=next(left))

    return recording


def host_load(**changed: float | None) -> HostLoad:
    """A quiet machine's, but for what is `changed`."""
    quiet = {"seconds": 1.0, "cores": 2, "foreign_cores": 0.02, "own_cores": 0.4, "waited_cores": 0.05}
    return HostLoad.model_validate({**quiet, "steal_cores": 0.0, "lag_ms": 0.2, **changed})


def require_known(host: str) -> None:
    """As a lab refuses a host that it has not."""
    if host not in NAMES:
        raise InputError(f"no host {host!r}; hosts are {', '.join(NAMES)}")


class Replay(RealTime):
    """A provider's `run` that answers with recorded outputs, and counts what it was asked for.

    `before` is called with the number of the measuring command (from 1, warm-ups not counted) and its arguments,
    and may raise, or return a result of its own.
    """

    name = "replay"
    pace_s = 0.004

    def __init__(
        self, before: Callable[[int, Sequence[str]], CommandResult | None] = lambda _number, _argv: None
    ) -> None:
        self.before = before
        self.measured: list[tuple[str, tuple[str, ...]]] = []
        self.warmed: list[tuple[str, str]] = []

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **_ignored: object
    ) -> CommandResult:
        require_known(host)
        tool = argv[2]
        if tool == "ping":
            self.warmed.append((host, argv[-1]))
            return CommandResult(host, tuple(argv), 0, recorded("ping-5ms.txt"), "", 0.01)
        self.measured.append((host, tuple(argv)))
        answer = self.before(len(self.measured), argv)
        return answer or CommandResult(host, tuple(argv), 0, self._output(argv), "", 0.5)

    def _output(self, argv: Sequence[str]) -> str:
        if "netperf" in argv:
            return recorded("netperf-udp-rr-22ms.txt")
        return json.dumps(json.loads(recorded(f"iperf3.18-{'udp' if '-u' in argv else 'tcp'}.json")))

"""Hosts for tests that need no kernel: each holds what `tc` and `ethtool` are told, and shows it as they do.

A lab of them lives in this process. Nothing of a script is run; only the lines that set shaping are understood.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pytest

from minigts.dataplane import filters, kernel_settings
from minigts.errors import HostFailed
from minigts.lab import usage
from minigts.providers import registry
from minigts.providers.base import CARRIERS, Carrier, CommandResult, Supports
from minigts.providers.real_time import RealTime
from minigts.topology import sysctls
from minigts.topology.plan.elements import Host, HostPort, Port, Switch
from minigts.topology.plan.plan import Plan


@dataclass
class Network:
    """Everything of one lab that is not in its run directory, as kernels would hold it."""

    plan: Plan
    """Whose hosts answer."""
    begun: Plan
    """As it came up: what the hosts have of addresses and routes."""
    tbf: dict[tuple[str, str], tuple[float, int, int]] = field(default_factory=dict)
    """By host and port: bit/s, burst, limit in bytes."""
    netem: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    filters: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """By host and port: handle, and the last word of what the lab's rule does: `ok`, or the device that it leads to."""
    gro: set[tuple[str, str]] = field(default_factory=set)
    surplus_ms: float = 0.1
    """What a link takes one way beyond what netem adds."""
    set: int = 0
    """How often something was set on a host."""
    asked: int = 0
    """How often a host was asked for anything."""
    sent: dict[tuple[str, str], tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    """By host and port: bytes and frames sent."""
    mbit: float = 0.0
    """What each port sends besides, since the lab came up."""
    begun_ns: int = field(default_factory=time.time_ns)
    no_carriers: str = ""
    """Why no port can lose its carrier."""
    carriers: list[tuple[str, str, bool]] = field(default_factory=list)
    """What was done to carriers: the host, its port, and whether it has one since."""
    drops: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By host and device: frames that its qdiscs dropped."""
    echoes: Counter[str] = field(default_factory=Counter)
    """How many echo requests have come to a host."""


NETWORKS: dict[Path, Network] = {}
"""By run directory, as kernels outlive the object that stands for their provider."""


def _kernel(machine: Host | Switch) -> list[str]:
    settings = sysctls.set_to(machine.sysctls if isinstance(machine, Host) else ())
    return [kernel_settings.BEGIN, *(f"/proc/sys/{name.replace('.', '/')}:{value}" for name, value in settings.items())]


def _filters(network: Network, machine: Host | Switch) -> list[str]:
    """As `tc filter show` prints them where arriving frames are delayed: the lab's own two."""
    lines = [filters.BEGIN]
    for port in machine.ports:
        lines.append(f"--filters of {port.name} ingress")
        for handle, does in network.filters.get((machine.name, port.name), {}).items():
            shown = "gact action pass" if does == "ok" else f"mirred (Egress Redirect to device {does}) stolen"
            lines += [f"filter protocol all pref 1 u32 chain 0 fh {handle} order 1", f"\taction order 1: {shown}"]
        lines.append(f"--filters of {port.name} egress")
    return lines


class TcHosts(RealTime):
    """See `providers.base.Provider`."""

    name = "tc-hosts"
    supports = Supports(frozenset({"memory of its own", "sysctls of a kernel of its own", CARRIERS}), {})
    engine: Literal["docker", "namespace"] = "docker"
    pace_s = 0.004

    def __init__(self, rundir: Path) -> None:
        self.rundir = rundir

    def missing(self) -> list[str]:
        return []

    def carriers_lack(self) -> str:
        there = NETWORKS.get(self.rundir)
        return "" if there is None else there.no_carriers

    def set_carriers(self, carriers: Sequence[Carrier]) -> None:
        for each in carriers:
            NETWORKS[self.rundir].carriers.append((each.machine, each.interface, each.on))

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        (self.rundir / "hosts").mkdir()
        NETWORKS[self.rundir] = Network(plan, plan)
        progress(f"{len(plan.machines)} of {len(plan.machines)} hosts answer")

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        network = NETWORKS.get(self.rundir)
        if network is None or host not in {machine.name for machine in network.plan.machines}:
            raise HostFailed(f"host {host} is not running")
        network.asked += 1
        stdout = self._answer(network, host, list(argv), stdin.decode())
        if on_output is not None:
            on_output(stdout.encode())
        return CommandResult(host, tuple(argv), 0, stdout, "", 0.0)

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        self.run(host, ["true"], timeout_s=1)

    def attach(self, host: str, argv: Sequence[str]) -> int:
        return self.run(host, argv, timeout_s=1).code

    def restart(self, host: str) -> None:
        """Whatever was set on it is lost."""
        network = NETWORKS[self.rundir]
        for held in (network.tbf, network.netem, network.filters):
            for key in [key for key in held if key[0] == host]:
                del held[key]
        network.gro -= {key for key in network.gro if key[0] == host}

    def diagnose(self, host: str, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)

    def processes(self) -> tuple[int, ...]:
        return ()

    def down(self) -> None:
        NETWORKS.pop(self.rundir, None)

    def _answer(self, network: Network, host: str, argv: list[str], stdin: str) -> str:  # noqa: PLR0911
        match argv:
            case ["bash", "-eu", "-s"]:
                self._set(network, host, stdin)
                return ""
            case ["tc", "-j", "-batch", "-"]:
                self._set(network, host, stdin)
                return self._qdiscs(network, host)
            case ["sh", "-c", script] if script.startswith("tc -j qdisc show; ip -j address show"):
                return self._settings(network, host, script)
            case [program, address, count, _] if program.endswith("/probe"):
                return self._probe(network, host, address, int(count))
            case ["sh", "-euc", usage.COUNTERS]:
                return self._counters(network, host)
            case ["cat"]:
                return stdin
            case ["cat", "/proc/net/snmp"]:
                return f"Icmp: InMsgs InErrors InEchos\nIcmp: 0 0 {network.echoes[host]}\n"
            case ["env", *_, program, "start"] if program.endswith("/phase.sh"):
                return f"ADDRESS={network.plan.host(host).address}\nMTU=1500\n"
            case ["iperf3", "-c", *_]:
                return '{"error": "no server here"}'
        return ""

    def _counters(self, network: Network, host: str) -> str:
        """As `usage.COUNTERS` prints them. Processor and memory are in no test's way."""
        at_ns = time.time_ns()
        now = int(network.mbit * 125 * (at_ns - network.begun_ns) / 1_000_000)
        counted = [(port.name, *network.sent[host, port.name]) for port in network.plan.machine(host).ports]
        ports = [
            f"{name}: 0 0 0 0 0 0 0 0 {sent + now} {frames + now // 1000} 0 0 0 0 0 0" for name, sent, frames in counted
        ]
        qdiscs = [{"dev": port, "drops": count} for (where, port), count in network.drops.items() if where == host]
        memory = ["MemTotal: 4000 kB", "MemAvailable: 3000 kB"]
        return "\n".join([str(at_ns), "cpu 1 0 0 9 0 0 0 0 0 0", *memory, *ports, json.dumps(qdiscs)])

    def _set(self, network: Network, host: str, script: str) -> None:
        for line in script.splitlines():
            words = line.split()
            match words:
                case [
                    "qdisc",
                    "replace",
                    "dev",
                    port,
                    "root",
                    "handle",
                    "2:",
                    "tbf",
                    "rate",
                    rate,
                    "burst",
                    burst,
                    "limit",
                    limit,
                ]:
                    network.tbf[host, port] = (float(rate.removesuffix("bit")), int(burst), int(limit))
                case ["qdisc", "replace", "dev", port, "root", "pfifo", *_]:
                    network.tbf.pop((host, port), None)
                case ["qdisc", "replace", "dev", device, "root", "netem", *options]:
                    network.netem[host, device.removeprefix("ifb-")] = _netem(options)
                case ["qdisc", "del", "dev", port, "clsact"]:
                    network.netem.pop((host, port), None)
                    network.filters.pop((host, port), None)
                case ["filter", "replace", "dev", port, "ingress", "pref", "1", "handle", handle, *_, does]:
                    network.filters.setdefault((host, port), {})[handle] = does
                case ["ethtool", "-K", port, "gro", state]:
                    (network.gro.add if state == "on" else network.gro.discard)((host, port))
                case _:
                    continue
            network.set += 1

    def _qdiscs(self, network: Network, host: str) -> str:
        shown: list[dict[str, Any]] = []
        for (where, port), (rate, burst, limit) in network.tbf.items():
            options = {"rate": round(rate / 8), "burst": burst, "limit": limit}
            shown += [{"kind": "tbf", "dev": port, "root": True, "options": options}] if where == host else []
        for (where, port), options in network.netem.items():
            if where == host:
                shown.append({"kind": "clsact", "dev": port, "parent": "ffff:fff1"})
                shown.append({"kind": "netem", "dev": f"ifb-{port}", "root": True, "options": options})
        return json.dumps(shown)

    def _settings(self, network: Network, host: str, script: str) -> str:
        ports, machine = network.plan.machine(host).ports, network.plan.machine(host)
        links = [
            {"ifname": port.name, "mtu": port.mtu, "flags": ["UP"], "addr_info": _addresses(port)} for port in ports
        ]
        links.append({"ifname": "lo", "mtu": 65536, "flags": ["UP"], "addr_info": [_address(machine.address, 32)]})
        features = [
            [{"ifname": port.name, "generic-receive-offload": {"active": (host, port.name) in network.gro}}]
            for port in ports
        ]
        documents = [self._qdiscs(network, host), json.dumps(links), *map(json.dumps, features)]
        return "\n".join(
            [
                *documents,
                "--routes--",
                *_routes(network.begun, host),
                "--routes of IPv6--",
                "--forwarding--",
                "1",
                *_kernel(machine),
                *(_filters(network, machine) if filters.BEGIN in script else ()),
            ]
        )

    def _probe(self, network: Network, host: str, address: str, count: int) -> str:
        """Every request comes back, unless a link on the way loses all."""
        path = _path(network.plan, host, address)
        held = [
            network.netem.get((machine.name, port.name), {})
            for machine in network.plan.machines
            for port in machine.ports
            if port.link in path
        ]
        if any(each.get("loss-random", {}).get("loss", 0) == 1 for each in held):
            return json.dumps({"sent": count, "rtts_us": []})
        network.echoes[answering(network.plan, address)] += count
        delays_ms = sum(each.get("delay", {}).get("delay", 0) * 1000 for each in held)
        rtt_us = 1000 * (delays_ms + 2 * len(path) * network.surplus_ms)
        return json.dumps({"sent": count, "rtts_us": [rtt_us] * count})


class EditedHosts(TcHosts):
    """See `providers.base.Edits`."""

    def require_room_for(self, plan: Plan) -> None:
        """There is room for any."""

    def alter(self, plan: Plan, progress: Callable[[str], None]) -> frozenset[str]:
        network = NETWORKS[self.rundir]
        had = {machine.name: [port.mac for port in machine.ports] for machine in network.plan.machines}
        has = {machine.name: [port.mac for port in machine.ports] for machine in plan.machines}
        for name, macs in had.items():
            if has.get(name) != macs:
                self.restart(name)
        network.plan = network.begun = plan
        return frozenset(name for name in has if has[name] != had.get(name))


def _address(address: str, prefix: int) -> dict[str, Any]:
    return {"family": "inet", "local": address, "prefixlen": prefix, "scope": "global"}


def _addresses(port: Port) -> list[dict[str, Any]]:
    return [_address(port.address, port.prefix)] if isinstance(port, HostPort) else []


def _routes(plan: Plan, host: str) -> list[str]:
    machine = plan.machine(host)
    own = [f"{port.subnet} dev {port.name} proto kernel" for port in machine.ports if isinstance(port, HostPort)]
    ways = plan.routes_of(host) if isinstance(machine, Host) else ()
    return own + [
        f"{way.to.removesuffix('/32')} via {way.via} dev {port.name} src {way.source}"
        for way in ways
        for port in machine.ports
        if isinstance(port, HostPort) and IPv4Address(way.via) in IPv4Network(port.subnet)
    ]


def _netem(options: list[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"limit": int(options[options.index("limit") + 1])}
    delay_us = float(options[options.index("delay") + 1].removesuffix("us"))
    jitter = re.findall(r"^([\d.]+)us$", options[2]) if len(options) > 2 else []
    shown["delay"] = {"delay": delay_us / 1e6, "jitter": float(jitter[0]) / 1e6 if jitter else 0.0}
    shown["delay"]["correlation"] = _share(options[3]) if jitter and options[3].endswith("%") else 0.0
    if "rate" in options:
        shown["rate"] = {"rate": 12_500_000_000_000}
    if "gemodel" in options:
        chances = options[options.index("gemodel") + 1 :][:4]
        shown["loss-gemodel"] = dict(zip(("p", "r", "1-h", "1-k"), map(_share, chances), strict=True))
    elif "loss" in options:
        shown["loss-random"] = {"loss": _share(options[options.index("loss") + 2])}
    for what in ("reorder", "duplicate", "corrupt"):
        if what in options:
            shown[what] = {what: _share(options[options.index(what) + 1])}
    if "seed" in options:
        shown["seed"] = int(options[options.index("seed") + 1])
    return shown


def _share(percent: str) -> float:
    return float(percent.removesuffix("%")) / 100


def _path(plan: Plan, source: str, address: str) -> tuple[str, ...]:
    """The links on the way to an address of another host's."""
    host = plan.host(source)
    for port in host.ports:
        if address in (port.peer_address, port.address):
            return (port.link,)
    target = next(other for other in plan.hosts if address == other.address)
    return plan.path(source, target.name).links


def answering(plan: Plan, address: str) -> str:
    own = {host.address: host.name for host in plan.hosts}
    return (own | {port.address: host.name for host in plan.hosts for port in host.ports})[address]


def use(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Until the test ends, labs are of these hosts, without a pause between probes, and have their state in `place`."""
    monkeypatch.setenv("MINIGTS_STATE", str(place / "state"))
    monkeypatch.setattr(TcHosts, "pace_s", 0.0)
    register(monkeypatch)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, the provider can be asked for by its name."""
    monkeypatch.setitem(registry._PROVIDERS, TcHosts.name, TcHosts)

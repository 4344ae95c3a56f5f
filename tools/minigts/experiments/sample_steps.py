"""What one attempt at a sample runs, where, and in which order. Pure: nothing is started here.

In a replicate each program begins some milliseconds late, by chance (topology/plan/reseed.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from minigts.errors import InputError, MinigtsError
from minigts.experiment_language.model import MEASUREMENTS, AnyMeasurement, Crossing
from minigts.experiments.commands import WATCHED_AROUND_S, command, estimate_s, timeout_s, underlay_mtu
from minigts.experiments.matrix import Sample, path_between
from minigts.language.quantities import OFFERED_MBIT
from minigts.overlays import Endpoint
from minigts.tools.base import PathUnderTest, Service
from minigts.tools.command import KILLED_AFTER_S, CommandOptions
from minigts.tools.cpu_bound import calls_are_free
from minigts.tools.flows import FlowsOptions, Member
from minigts.tools.iperf3_tcp import TcpOptions
from minigts.tools.iperf3_udp import UdpOptions
from minigts.tools.options import percent
from minigts.topology.plan import chance, reseed
from minigts.topology.plan.plan import Plan
from minigts.topology.software import Software

FIRST_OWN_PORT, FIRST_CROSSING_PORT, FIRST_FLOW_PORT = 5301, 5401, 5501
"""The first ports of servers of one sample's own; an overlay's iperf3 listens on 5201 and serves one at a time."""
SHORT_S = 20.0
WATCHED_EVERY_S = 0.25
WATCHING = "/run/minigts-watching"
"""A pipe without a writer, on which bash can wait without a process."""
MEASURED = f"{WATCHING}.measured"
"""The file that exists while the client runs."""
OFFLOADS = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "tx-udp-segmentation": "tx-udp-segmentation",
}
"""The offloads, as ethtool(8) sets them and as it shows them: TCP segmentation by the device, by the kernel, and UDP
segmentation, which replaced the fragmentation offload that Linux 4.14 removed. TCP's needs checksums by the device,
which are switched on meanwhile, as links have them off."""
CHECKSUMS = {"tx": "tx-checksumming"}
KEPT_OFFLOADS = "/run/minigts-offloads"
"""The file, followed by the host's name and the end, that keeps the previous offloads while a sample is taken."""

_THAT_DEVICE = """
kept=$1
set -- $(ip -o -4 route get "$0") && while [ "$1" != dev ]; do shift; done && device=$2
"""
_SET_OFFLOADS = f"""{_THAT_DEVICE}
[ -e "$kept" ] || ethtool -k "$device" >"$kept"
ethtool -K "$device" tx on
for feature in {" ".join(OFFLOADS)}; do ethtool -K "$device" "$feature" STATE; done
echo "device $device"
ethtool -k "$device"
"""
_OFFLOADS_BACK = f"""{_THAT_DEVICE}
for feature in {" ".join(":".join(each) for each in (OFFLOADS | CHECKSUMS).items())}; do
  state=$(sed -n "s/^[[:space:]]*${{feature#*:}}: \\(o[nf]*\\).*/\\1/p" "$kept")
  [ -z "$state" ] || ethtool -K "$device" "${{feature%%:*}}" "$state"
done
rm "$kept"
"""
CROSSED_LONGER = 1.5
"""Beside a tool without a fixed duration, cross traffic lasts for this multiple of the tool's estimate: ping's
intervals of 10 ms take up to 16 ms where the kernel's clock ticks every 4 ms and a reply is late."""
CROSSING, SERVING, LISTENING, WATCH = "cross", "server", "listening", "cpu"
FLOW, IDLE = "flow to", "idle to"
"""The beginning of the names of calls whose end is the host that receives."""
IDLE_ECHOES = ("ping", "-n", "-c", "10", "-i", "0.01", "-W", "3")
"""Echo requests before flows begin, the fastest of which is the idle round trip."""
SERVED = "/run/minigts-server"
"""The file, followed by the host's name as hosts may share files, that exists while a measurement's `serve` runs; it
is removed before `serve` is ended."""
_BRING = """
at_most=$1
shift
timeout -k GRACE "$at_most" "$@" &
echo $! >"$0"
wait $! && code=0 || code=$?
[ -e "$0" ] || exit 0
rm -f "$0"
exit $code
"""
_END = """
[ -e "$0" ] || exit 0
server=$(cat "$0")
rm -f "$0"
kill "$server" 2>/dev/null
for look in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  kill -0 "$server" 2>/dev/null || exit 0
  sleep 0.1
done
"""
_LISTENS = """
for port; do
  for look in $(seq 100); do
    ss -Hltun "sport = $port" | grep -q . && continue 2
    sleep 0.1
  done
  echo "nothing listens on port $port within 10 s" >&2
  exit 1
done
"""
_ENDED = """
for port; do
  for look in 1 2 3 4 5 6 7 8 9 10; do
    ss -Hltn "sport = $port" | grep -q . || break
    sleep 0.1
  done
done
"""
"""Waits for the previous sample's server, which may not know yet that its client has ended: a new server on its port
would end at once. A server that still runs after a second waits for a client that never came, and can be used."""
_SERVE = 'for port; do iperf3 -s -J -1 -D -p "$port" --idle-timeout 60; done'
_MAKE_CLOCK = ("sh", "-c", 'rm -f "$0" && mkfifo "$0"', WATCHING)
_WATCH = """
exec 9<>FILE
for ((count = 0; count < MOST; count++)); do
  [[ -e FILE ]] || exit 0
  read -r uptime _ </proc/uptime
  read -r line </proc/stat
  echo "@ $uptime"
  echo "stat $line"
  [[ ! -e FILE.measured ]] || echo measured
  for file in /sys/fs/cgroup/{docker/*,minigts/*}/cpu.stat; do
    [[ ! -r $file ]] || { read -r line <"$file" && echo "cgroup ${file:15:-9} $line"; } 2>/dev/null
  done
  read -r -t EVERY -u 9 || :
done
"""


@dataclass(frozen=True)
class Call:
    """One command on one host. `needed`: if it fails, the sample fails. `limit_s` is its timeout."""

    name: str
    host: str
    argv: tuple[str, ...]
    limit_s: float = SHORT_S
    needed: bool = True


@dataclass(frozen=True)
class Procedure:
    before: tuple[Call, ...]
    client: Call
    beside: tuple[Call, ...]
    after: tuple[Call, ...]
    lead: tuple[Call, ...] = ()
    tail: tuple[Call, ...] = ()


class Second(Protocol):
    """Returns a second container of the overlay on the host of that name, which is started at the first call."""

    def __call__(self, host: str) -> Endpoint: ...


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a sample: the plan, and the overlay's endpoints."""

    plan: Plan
    endpoints: Mapping[str, Endpoint]
    second: Second
    pace_s: float | None
    """The provider's interval between echo requests that keep hosts awake, in seconds; None in virtual time."""

    def endpoint(self, overlay: str, host: str) -> Endpoint:
        if host not in self.endpoints:
            raise MinigtsError(f"overlay {overlay} has no endpoint on {host}")
        return self.endpoints[host]

    def plain(self, host: str) -> Endpoint:
        return Endpoint(host, self.plan.own_address(host), underlay_mtu(self.plan), ())


def procedure(measurement: AnyMeasurement, sample: Sample, around: Surroundings) -> Procedure:
    """The procedure for `sample`; `measurement` has the options of its condition. Raises InputError."""
    if isinstance(measurement.options, FlowsOptions):
        return _of_flows(measurement, measurement.options, sample, around)
    source, way = client_end(measurement, sample, around), way_of(measurement, sample, around)
    target = _server_end(measurement, sample, around)
    limit_s = timeout_s(measurement, way.path)
    client = Call("client", sample.source, command(measurement, source, way, around.pace_s), limit_s)
    sessions = tuple(_sessions(measurement, sample, around, way))
    ports = [way.port + number for number in range(len(sessions) + 1)] if way.port else []
    service = measurement.instrument.serves(measurement.options, way)
    ports = [] if service or isinstance(measurement.options, CommandOptions) else ports
    watched = [sample.source, sample.target] if "cpu" in measurement.watch else []
    estimated_s = estimate_s(measurement, way.path)
    crossed_s = estimated_s if _flow(measurement) else CROSSED_LONGER * estimated_s
    crossing = [(pair, FIRST_CROSSING_PORT + number) for number, pair in enumerate(measurement.cross)]
    return Procedure(
        before=(
            *_offloads(measurement, source, target, way),
            *_servers(target, ports),
            *(
                server
                for flow, port in crossing
                for server in _servers(_end_of(flow, flow.target, sample, around), [port])
            ),
            *(Call("begin", host, _MAKE_CLOCK) for host in dict.fromkeys(watched)),
        ),
        client=client,
        beside=(
            *([_serving(target, service.argv, limit_s)] if service else []),
            *sessions,
            *(_flow_across(flow, port, sample, around, crossed_s) for flow, port in crossing),
            *_stress(measurement, sample),
            *(_watch(host, limit_s) for host in dict.fromkeys(watched)),
        ),
        after=(
            *([_server_ends(target)] if service else []),
            *(Call("end", host, ("rm", "-f", WATCHING, MEASURED), needed=False) for host in dict.fromkeys(watched)),
            *_offloads_back(measurement, source, target, way),
        ),
        lead=(
            *([_listening(target, service.port)] if service else []),
            *(_around(host, f"sleep {WATCHED_AROUND_S}; : >{MEASURED}") for host in dict.fromkeys(watched)),
        ),
        tail=tuple(_around(host, f"rm -f {MEASURED}; sleep {WATCHED_AROUND_S}") for host in dict.fromkeys(watched)),
    )


def client_end(measurement: AnyMeasurement, sample: Sample, around: Surroundings) -> Endpoint:
    """The endpoint on which the client runs."""
    if measurement.ends.client == "host":
        return around.plain(sample.source)
    if measurement.ends.client == "second":
        return around.second(sample.source)
    return around.endpoint(sample.overlay, sample.source)


def way_of(measurement: AnyMeasurement, sample: Sample, around: Surroundings) -> PathUnderTest:
    """The path from the sample's client to its server."""
    target = _server_end(measurement, sample, around)
    own_server = measurement.ends.server == "host" or _session_count(measurement) is not None
    way = PathUnderTest(
        target.address,
        target.mtu,
        underlay_mtu(around.plan),
        path_between(around.plan, sample.source, sample.target),
    )
    way = replace(way, source=client_end(measurement, sample, around).address)
    way = replace(way, course=chance.course(around.plan))
    near, far = (around.plan.host(name).software or Software() for name in (sample.source, sample.target))
    way = replace(way, into_source=near.into_root, into_target=far.into_root)
    way = replace(way, port=FIRST_OWN_PORT) if own_server else way
    return replace(way, calls_are_free=calls_are_free(around.plan, sample.source))


def _server_end(measurement: AnyMeasurement, sample: Sample, around: Surroundings) -> Endpoint:
    if measurement.ends.server == "host":
        return around.plain(sample.target)
    end = around.endpoint(sample.overlay, sample.target)
    if measurement.ends.server == "own":
        if not end.prefix:
            raise InputError(f"overlay {sample.overlay} has no container with an address of its own")
        return replace(end, address=end.own or end.address)
    return end


def _session_count(measurement: AnyMeasurement) -> int | None:
    options = measurement.options
    return options.sessions if isinstance(options, UdpOptions) else None


def _sessions(measurement: AnyMeasurement, sample: Sample, around: Surroundings, way: PathUnderTest) -> Iterator[Call]:
    """All sessions but the first, from the hosts that follow the first one in the plan."""
    wanted = (_session_count(measurement) or 1) - 1
    names = [host.name for host in around.plan.hosts]
    first = names.index(sample.source)
    others = [name for name in names[first + 1 :] + names[:first] if name != sample.target]
    if wanted > len(others):
        raise InputError(f"{sample.id}: {wanted + 1} sessions need as many hosts beside {sample.target}")
    for number, host in enumerate(others[:wanted], start=1):
        own = replace(
            way, port=(way.port or FIRST_OWN_PORT) + number, path=path_between(around.plan, host, sample.target)
        )
        argv = command(measurement, around.endpoint(sample.overlay, host), own, around.pace_s)
        yield Call("session", host, argv, timeout_s(measurement, own.path))


def _of_flows(measurement: AnyMeasurement, options: FlowsOptions, sample: Sample, around: Surroundings) -> Procedure:
    """All flows at once, each in its own time: the first one is the client, and the others run beside it. Before them
    the idle round trip is measured between each pair of their ends."""
    members = options.members(sample.source, sample.target)
    clients: list[Call] = []
    ports: dict[Endpoint, list[int]] = {}
    idle: dict[tuple[str, str], Call] = {}
    services: dict[str, tuple[Endpoint, Service, float]] = {}
    for number, member in enumerate(members):
        own, ends = flow_of(measurement, options, member), replace(sample, source=member.source, target=member.target)
        source, way = client_end(own, ends, around), way_of(own, ends, around)
        if _flow(own):
            way = replace(way, port=FIRST_FLOW_PORT + number)
            ports.setdefault(_server_end(own, ends, around), []).append(FIRST_FLOW_PORT + number)
        argv = command(own, source, way, around.pace_s)
        begins_s = member.flow.begins_s
        if service := own.instrument.serves(own.options, way):
            until_s = max(timeout_s(own, way.path) + begins_s, services.get(member.target, (0, 0, 0.0))[2])
            services[member.target] = (_server_end(own, ends, around), service, until_s)
        argv = ("sh", "-c", _LATE, f"{begins_s:g}", *argv) if begins_s else argv
        clients.append(
            Call(
                f"{FLOW} {member.target}" if number else "client",
                member.source,
                argv,
                timeout_s(own, way.path) + begins_s,
            )
        )
        argv = (*source.prefix, *IDLE_ECHOES, way.address)
        idle.setdefault(
            (member.source, member.target), Call(f"{IDLE} {member.target}", member.source, argv, needed=False)
        )
    served = [call for target, own_ports in ports.items() for call in _servers(target, own_ports)]
    return Procedure(
        before=(*served, *idle.values()),
        client=clients[0],
        beside=(
            *(_serving(target, service.argv, until_s) for target, service, until_s in services.values()),
            *clients[1:],
        ),
        after=tuple(_server_ends(target) for target, _, _ in services.values()),
        lead=tuple(_listening(target, service.port) for target, service, _ in services.values()),
    )


def flow_of(measurement: AnyMeasurement, options: FlowsOptions, member: Member) -> AnyMeasurement:
    """The measurement that one flow of several is."""
    flow = member.flow
    return MEASUREMENTS[flow.tool].model_validate(
        {
            "name": measurement.name,
            "paths": [{"from": member.source, "to": member.target}],
            "tool": flow.tool,
            "options": options.options_of(flow),
            "ends": measurement.ends,
        }
    )


def _servers(target: Endpoint, ports: list[int]) -> Iterator[Call]:
    """Starts an iperf3 for each port that serves once and ends by itself. The host checks whether it listens, as a
    measuring container has neither ss nor grep."""
    if ports:
        shell = ("sh", "-c")
        yield Call("ports", target.host, (*target.network, *shell, _ENDED, "sh", *map(str, ports)))
        yield Call("servers", target.host, (*target.prefix, *shell, _SERVE, "sh", *map(str, ports)))
        yield Call("servers listen", target.host, (*target.network, *shell, _LISTENS, "sh", *map(str, ports)))


def _serving(target: Endpoint, argv: tuple[str, ...], limit_s: float) -> Call:
    """Runs `serve` at the path's end until it is told to end; if it ends before, the call has its exit code."""
    script = _BRING.replace("GRACE", f"{KILLED_AFTER_S:g}")
    argv = (*target.network, "sh", "-c", script, f"{SERVED}-{target.host}", f"{limit_s + SHORT_S:g}", *argv)
    return Call(SERVING, target.host, argv, limit_s + 2 * SHORT_S)


def _server_ends(target: Endpoint) -> Call:
    return Call("server ends", target.host, ("sh", "-c", _END, f"{SERVED}-{target.host}"), needed=False)


def _listening(target: Endpoint, port: int | None) -> Call:
    """Waits until `serve` listens on `port`, or for 0.2 s where there is no port."""
    script = ("sleep", "0.2") if port is None else ("sh", "-c", _LISTENS, "sh", str(port))
    return Call(LISTENING, target.host, (*target.network, *script))


def _flow_across(flow: Crossing, port: int, sample: Sample, around: Surroundings, seconds: float) -> Call:
    """Cross traffic from one end to the other, until after the end of the measurement."""
    length_s = math.ceil(seconds)
    source, target = (_end_of(flow, host, sample, around) for host in (flow.source, flow.target))
    udp = ("-u",) if flow.protocol == "udp" else ()
    rate = ("-b", f"{OFFERED_MBIT.parse(flow.rate) * 1e6:.0f}") if flow.rate else ()
    argv = ("iperf3", "-J", "-c", target.address, "-p", str(port), "-t", str(length_s), *udp, *rate)
    return Call(CROSSING, flow.source, (*source.prefix, *argv), 3 * length_s + 15)


def _end_of(flow: Crossing, host: str, sample: Sample, around: Surroundings) -> Endpoint:
    return around.endpoint(sample.overlay, host) if flow.between == "containers" else around.plain(host)


def _flow(measurement: AnyMeasurement) -> TcpOptions | UdpOptions | None:
    options = measurement.options
    return options if isinstance(options, TcpOptions | UdpOptions) else None


def _offloads(measurement: AnyMeasurement, source: Endpoint, target: Endpoint, way: PathUnderTest) -> Iterator[Call]:
    """Sets the offloads at both ends. One that cannot be set is no error, as they are read back."""
    flow = _flow(measurement)
    if flow and flow.offload:
        script = _SET_OFFLOADS.replace("STATE", flow.offload)
        yield _on_interface("offload source", source, way.address, script)
        yield _on_interface("offload target", target, source.address, script)


def _offloads_back(
    measurement: AnyMeasurement, source: Endpoint, target: Endpoint, way: PathUnderTest
) -> Iterator[Call]:
    flow = _flow(measurement)
    if flow and flow.offload:
        yield replace(_on_interface("back source", source, way.address, _OFFLOADS_BACK), needed=False)
        yield replace(_on_interface("back target", target, source.address, _OFFLOADS_BACK), needed=False)


def _on_interface(name: str, end: Endpoint, towards: str, script: str) -> Call:
    """Runs the script for the interface that leads `towards` an address."""
    kept = f"{KEPT_OFFLOADS}-{end.host}-{name.rpartition(' ')[2]}"
    return Call(name, end.host, (*end.network, "sh", "-c", script, towards, kept))


def _stress(measurement: AnyMeasurement, sample: Sample) -> Iterator[Call]:
    """stress-ng on both hosts, after the omitted beginning. It takes whole seconds: with `0.5s` it would never end."""
    flow = _flow(measurement)
    length_s = round(flow.duration_s * percent(flow.stress) / 100) if flow else 0
    if flow and length_s:
        wait_s = (flow.omit_s if isinstance(flow, TcpOptions) else 0) or 0
        stress = (
            f"sleep {wait_s:g}; exec timeout {length_s + 10} stress-ng --cpu 1 --timeout {length_s}s --metrics-brief"
        )
        for host in (sample.source, sample.target):
            yield Call("stress", host, ("sh", "-c", stress), length_s + wait_s + SHORT_S)


def _around(host: str, script: str) -> Call:
    return Call("around", host, ("sh", "-c", script), needed=False)


def _watch(host: str, limit_s: float) -> Call:
    """Reads the processor counters of a host until its file is removed."""
    limit_s += 2 * WATCHED_AROUND_S
    most = round(limit_s / WATCHED_EVERY_S)
    script = _WATCH.replace("FILE", WATCHING).replace("MOST", str(most)).replace("EVERY", str(WATCHED_EVERY_S))
    return Call(WATCH, host, ("bash", "-c", script), limit_s + SHORT_S, needed=False)


_LATE = 'sleep "$0"; exec "$@"'


def begun_late(todo: Procedure, sample: Sample, plan: Plan) -> Procedure:
    """The same procedure with a late start of each program that sends; unchanged where there are no replicates."""
    if not sample.replicate:
        return todo
    beside = tuple(
        call if call.name == WATCH else _late(call, sample, plan, f"{number} {call.name}")
        for number, call in enumerate(todo.beside)
    )
    return replace(todo, client=_late(todo.client, sample, plan, "client"), beside=beside)


def _late(call: Call, sample: Sample, plan: Plan, what: str) -> Call:
    late_s = reseed.late_s(plan, sample.id, what)
    return replace(call, argv=("sh", "-c", _LATE, f"{late_s:.6f}", *call.argv))

"""The command that a sample starts on its host, how long it takes, and what the plan predicts. Pure.

The servers (netserver, iperf3 -s) listen at every endpoint; an overlay's join script starts them.
"""

from __future__ import annotations

from collections.abc import Collection

from minigts.experiment_language.model import AnyMeasurement
from minigts.overlays import Endpoint
from minigts.overlays.catalogue import HEADER_BYTES
from minigts.tools.base import PathUnderTest
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan
from minigts.topology.tcp import Buffers, buffers


def command(measurement: AnyMeasurement, source: Endpoint, way: PathUnderTest, pace_s: float | None) -> tuple[str, ...]:
    """The client's whole command line on the source's host. `pace_s` is the provider's; None: hosts need no waking.

    Raises InputError for a rate that the path does not determine.
    """
    tool = measurement.instrument
    argv = tool.argv(measurement.options, way)
    if tool.quantity == "latency" and pace_s is not None:
        argv = keep_path_in_use(argv, way.address, pace_s, round(timeout_s(measurement, way.path)))
    return (*(source.network if tool.of_the_host else source.prefix), *argv)


def keep_path_in_use(argv: tuple[str, ...], address: str, pace_s: float, at_most_s: int) -> tuple[str, ...]:
    """Run `argv` while echo requests at the provider's pace keep the hosts on the way to `address` from falling asleep.

    A host that has slept for tens of milliseconds takes 0.1 to 0.2 ms longer for its next packet, because of the
    emulator and not of the link. Calibration measures at the same pace: docs/decisions/real-time.md.
    """
    beside = f'ping -q -n -i {pace_s:g} -w {at_most_s} "$0" >/dev/null 2>&1 & trap "kill $!" EXIT; "$@"'
    return ("sh", "-c", beside, address, *argv)


def warm_up(source: Endpoint, way: PathUnderTest) -> tuple[str, ...]:
    """One echo request, so that ARP and the overlay's own tables are filled before anything is measured."""
    return (*source.prefix, "ping", "-n", "-c", "1", "-W", "3", way.address)


GRACE_S = 10.0
"""How many seconds after its own timeout a tool is ended from outside."""
WATCHED_AROUND_S = 1
"""How many seconds before and after the client counters are watched, to show what it changes."""


def estimate_s(measurement: AnyMeasurement, path: Path) -> float:
    """How long one sample takes, in seconds."""
    around_s = 2 * WATCHED_AROUND_S if measurement.watch else 0
    return measurement.instrument.seconds(measurement.options, path) + around_s


def timeout_s(measurement: AnyMeasurement, path: Path) -> float:
    """After how many seconds a sample is given up: three times its estimate plus fifteen, but not before its tool ends
    by itself."""
    own_s = measurement.instrument.at_most_s(measurement.options)
    return max(3 * estimate_s(measurement, path) + 15, own_s and own_s + GRACE_S)


def prediction(measurement: AnyMeasurement, way: PathUnderTest) -> float | None:
    """The plan's figure, in the tool's unit; None when the links have no rate."""
    return measurement.instrument.predicted(measurement.options, way)


def least(measurement: AnyMeasurement, way: PathUnderTest) -> float | None:
    """The lower bound of the plan's figure, where the hosts' buffers may limit TCP; None otherwise."""
    return measurement.instrument.least(measurement.options, way)


def buffers_of(plan: Plan, source: str, target: str) -> tuple[Buffers, Buffers]:
    """The TCP buffers of the sending and of the receiving host, by the topology file."""
    sender, receiver = (buffers(plan.host(name).sysctls) for name in (source, target))
    return sender, receiver


def underlay_mtu(plan: Plan) -> int:
    """The links' smallest MTU in bytes."""
    return min((port.mtu for host in plan.hosts for port in host.ports), default=1500)


AROUND_A_FULL_PACKET = {**HEADER_BYTES, "wireguard": 60, "wireguard6": 80}
"""Bytes around a packet as large as the MTU, by encapsulation. WireGuard pads none beyond the MTU."""


def outer_mtu(mtu: int, underlay: int, seen: Collection[str]) -> int:
    """The size of a packet of `mtu` bytes on links of MTU `underlay`, with the encapsulations `seen` there.

    Encapsulations of unknown header size are assumed to fill the underlay's MTU.
    """
    added = AROUND_A_FULL_PACKET.get("+".join(seen))
    return underlay if added is None else min(underlay, mtu + added)

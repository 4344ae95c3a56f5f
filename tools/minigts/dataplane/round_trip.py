"""The round-trip time over links that are wires: the sum of all delays of its frames, to the nanosecond. Pure.

It holds for hosts whose programs take no time, as in virtual time, and for frames that do not wait for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minigts.dataplane import wire
from minigts.topology.frames import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, TAG_BYTES, Family
from minigts.topology.plan.elements import Host, Path, Switch
from minigts.topology.plan.plan import Plan

ICMP_HEADER_BYTES = 8
"""The header of an echo, in ICMP and ICMPv6 alike."""
NS_A_MS = 1e6


def echo_ms(plan: Plan, path: Path, payload_bytes: int = 56, added_bytes: int = 0, family: Family = "ipv4") -> float:
    """The round-trip time in ms of an ICMP echo with `payload_bytes`; 56 is the default of ping(8). `added_bytes` is
    the size of an overlay's encapsulation. Jitter is left out.
    """
    return frames_ns(plan, path, _echo_bytes(payload_bytes, family) + added_bytes) / NS_A_MS


def echo_s_at_lowest_rate(plan: Plan, path: Path, payload_bytes: int = 56) -> float:
    """The seconds that an ICMP echo takes at the lowest rate on the path, there or back; 0 without a rate. Echoes sent
    faster queue."""
    rates_mbit = [end.outgoing.rate_mbit for end in plan.ends_on(path) if end.outgoing.rate_mbit is not None]
    return max(
        (_echo_bytes(payload_bytes, plan.family) * 8 / (rate_mbit * 1e6) for rate_mbit in rates_mbit), default=0.0
    )


def _echo_bytes(payload_bytes: int, family: Family = "ipv4") -> int:
    return ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[family] + ICMP_HEADER_BYTES + payload_bytes


def frames_ns(plan: Plan, path: Path, frame_bytes: int) -> int:
    """The time in ns of one frame there and one back, of `frame_bytes` each, Ethernet header counted; of several ways
    the least."""
    return frames_range_ns(plan, path, frame_bytes)[0]


def echo_range_ms(plan: Plan, path: Path) -> tuple[float, float]:
    """The least and the most of `echo_ms` over all ways, between plain hosts."""
    least, most = frames_range_ns(plan, path, _echo_bytes(56, plan.family))
    return least / NS_A_MS, most / NS_A_MS


def frames_range_ns(plan: Plan, path: Path, frame_bytes: int) -> tuple[int, int]:
    """The least and the most of `frames_ns` over all ways there and back."""
    if not path.ways_there:
        only = _over_one_way(plan, path, frame_bytes)
        return only, only
    ends = (path.source, path.each_there), (path.target, path.each_back)
    each = [[_one_frame_ns(plan, start, links, frame_bytes) for links in ways] for start, ways in ends]
    return sum(map(min, each)), sum(map(max, each))


def _one_frame_ns(plan: Plan, start: str, links: Sequence[str], frame_bytes: int) -> int:
    """The time of one frame from `start` over these links."""
    machines = {machine.name: machine for machine in plan.machines}
    trunks = {link.name for link in plan.links if link.vlans}
    found = 0
    for port in plan.senders_on(start, links):
        found += wire.wire_for(port.outgoing).crossing_ns(frame_bytes + (TAG_BYTES if port.link in trunks else 0))
        found += _processor_ns(machines[start], frame_bytes) + _processor_ns(machines[port.peer_host], frame_bytes)
        start = port.peer_host
    return found


def _processor_ns(machine: Host | Switch, frame_bytes: int) -> int:
    """The time of a modelled processor for one frame on one port."""
    if not isinstance(machine, Host) or machine.processor is None:
        return 0
    return machine.processor.frame_ns + round(machine.processor.byte_ns * frame_bytes)


def _over_one_way(plan: Plan, path: Path, frame_bytes: int) -> int:
    trunks = {link.name for link in plan.links if link.vlans}
    links = sum(
        wire.wire_for(port.outgoing).crossing_ns(frame_bytes + (TAG_BYTES if port.link in trunks else 0))
        for port in plan.ends_on(path)
    )
    return links + sum(_processors_ns(plan, path, frame_bytes))


def _processors_ns(plan: Plan, path: Path, frame_bytes: int) -> Iterator[int]:
    """The times of modelled processors, for every port on the path, of the frame there and of the one back."""
    for machine in plan.machines:
        if one := _processor_ns(machine, frame_bytes):
            yield 2 * sum(path.links.count(port.link) for port in machine.ports) * one

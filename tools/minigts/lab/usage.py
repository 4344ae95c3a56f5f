"""What a lab does now: what each link carries in each direction and drops, and what its hosts use.

Each figure is the difference of two readings of counters: the hosts' own, and the wires' where links have wires. Rates
are per second of the lab's clock, which stands still in an idle lab in virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from minigts.dataplane.shaping import ifb
from minigts.dataplane.wire import WireState
from minigts.errors import reading_from
from minigts.foreign import parser_text
from minigts.lab import current, link_states, shown_links
from minigts.lab.lab import Lab
from minigts.language import documents
from minigts.providers.base import Restarts
from minigts.topology import disciplines
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.elements import Host, Port, Switch

LIMIT_S = 10.0
_BITS, _MEGA, _NS = 8, 1_000_000, 1_000_000_000
MARKS = ("ecn_mark", "ce_mark", "marked")
"""The counters of marked frames in `tc -s -j qdisc show`."""
COUNTERS = """
date +%s%N
head -n 1 /proc/stat
grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
grep : /proc/net/dev
tc -s -j qdisc show
"""


@dataclass(frozen=True)
class Carried:
    """Counters of one direction of a link, from the port that sends into it, since the lab came up."""

    bytes: int
    frames: int
    dropped: int
    """Frames that the queue in front of the rate dropped: the wire's, and the disciplines of the host that sends."""
    lost: int
    """Frames that the link's loss took."""
    queued: int = 0
    """Bytes in the queue in front of the rate at the time of the reading."""
    overrun: int = 0
    """Frames that were dropped because a host at one of the link's ends had no room."""
    marked: int = 0
    """Frames that the queue marked with ECN's "congestion experienced"."""


@dataclass(frozen=True)
class Used:
    """What one machine with a kernel of its own has used since that kernel started."""

    busy_share: tuple[int, int]
    """Ticks in which its processor was busy, and all ticks."""
    memory_bytes: tuple[int, int]
    """Memory in use, and all memory."""


@dataclass(frozen=True)
class Counters:
    """The counters of one machine, as COUNTERS prints them."""

    at_ns: int
    used: Used
    sent: Mapping[str, tuple[int, int]]
    """Bytes and frames sent, by interface."""
    drops: Mapping[str, int]
    """Frames that its qdiscs dropped, by interface."""
    queued: Mapping[str, int]
    """Bytes that wait in its qdiscs, by interface."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Frames that its qdiscs marked, by interface."""


@dataclass(frozen=True)
class Reading:
    """All counters of a lab, by machine; `carried` by the machine that sends and the link."""

    at_ns: Mapping[str, int]
    carried: Mapping[tuple[str, str], Carried]
    used: Mapping[str, Used]
    of_wires_alone: bool = False
    """Whether no host was asked, so that `carried` lacks what a queue in a host drops, marks and holds."""

    def lacks_queue(self, direction: Shaping) -> bool:
        """Whether the figures of a direction that is shaped so are without those of its queue."""
        return self.of_wires_alone and disciplines.is_in_host(direction)


@dataclass(frozen=True)
class DirectionUsage:
    """What one direction of a link has carried between two readings."""

    link: str
    source: str
    target: str
    mbit: float
    """Mbit/s, Ethernet headers included."""
    frames: float
    """Frames per second."""
    dropped: int
    lost: int
    rate_mbit: float | None
    """The rate of this direction now; None: it has no limit."""
    outage: str
    """The way in which the link is down: `cut`, `down`, `down at ams`; empty if it is not."""
    queued_bytes: int
    """Bytes in the queue in front of the rate now."""
    rtt_ms: float | None
    """The link's RTT now: delay and queueing time of both directions. None: the link is cut."""
    overrun: int = 0
    """Frames that were dropped because a host had no room."""
    marked: int = 0
    """Frames that the queue marked (ECN)."""


@dataclass(frozen=True)
class Load:
    """What a machine has used between two readings. `processor` is from 0 to 1; None in virtual time, where processor
    time costs the lab nothing."""

    host: str
    processor: float | None
    memory_bytes: int
    memory_total_bytes: int


@dataclass(frozen=True)
class Activity:
    seconds: float
    """Seconds of the lab's clock between the readings; 0 where no machine was on at both."""
    flows: tuple[DirectionUsage, ...]
    loads: tuple[Load, ...]


def read(lab: Lab) -> Reading:
    """Read the counters of all machines at once. Raises HostFailed when a machine does not answer."""
    on = lab.machines_on(lab.read_record())
    counted = lab.work_on(on, partial(_ask, lab))
    wires = shown_links.read_wires(lab)
    # A host that can be restarted alone has a kernel of its own, whose counters are of this host alone.
    own_kernels = isinstance(lab.provider, Restarts)
    return Reading(
        at_ns={name: each.at_ns for name, each in counted.items()},
        carried={
            (machine.name, port.link): _by_ends(lab, machine.name, port, counted)
            if wires is None
            else _with_host(wire_counters(wires[machine.name][port.name]), counted[machine.name], port.name)
            for machine in on
            for port in machine.ports
        },
        used={name: each.used for name, each in counted.items() if name not in lab.plan.sharing} if own_kernels else {},
    )


def activity_between(lab: Lab, before: Reading, after: Reading) -> Activity:
    """What happened from one reading to the next."""
    record = lab.read_record()
    both = before.at_ns.keys() & after.at_ns.keys()  # without machines that were off
    seconds = {name: max(0, after.at_ns[name] - before.at_ns[name]) / _NS for name in both}
    flows = []
    outgoing = {
        (machine.name, port.link): current.port_now(lab.plan, port, record).outgoing
        for machine in lab.plan.machines
        for port in machine.ports
        if machine.name in seconds
    }
    delays_ms = {end: one_way_ms(direction, after.carried[end]) for end, direction in outgoing.items()}
    down = dict(link_states.outages_in_words(lab.plan, record))
    for machine in lab.plan.machines:
        for port in machine.ports if machine.name in seconds else ():
            then, now = before.carried[machine.name, port.link], after.carried[machine.name, port.link]
            passed_s = seconds[machine.name]
            flows.append(
                DirectionUsage(
                    link=port.link,
                    source=machine.name,
                    target=port.peer_host,
                    mbit=_rate(now.bytes - then.bytes, passed_s) * _BITS / _MEGA,
                    frames=_rate(now.frames - then.frames, passed_s),
                    dropped=max(0, now.dropped - then.dropped),
                    lost=max(0, now.lost - then.lost),
                    rate_mbit=outgoing[machine.name, port.link].rate_mbit,
                    outage=down.get(port.link, ""),
                    queued_bytes=now.queued,
                    rtt_ms=None
                    if port.link in down or (port.peer_host, port.link) not in delays_ms
                    else round(delays_ms[machine.name, port.link] + delays_ms[port.peer_host, port.link], 6),
                    overrun=max(0, now.overrun - then.overrun),
                    marked=max(0, now.marked - then.marked),
                )
            )
    order = {link.name: index for index, link in enumerate(lab.plan.links)}
    loads = tuple(_load(lab, name, before.used[name], used) for name, used in after.used.items() if name in both)
    return Activity(max(seconds.values(), default=0.0), tuple(sorted(flows, key=lambda flow: order[flow.link])), loads)


def one_way_ms(direction: Shaping, carried: Carried) -> float:
    """The one-way delay of a frame that is sent now: queueing time and the link's delay."""
    waits_ms = carried.queued * _BITS / (direction.rate_mbit * 1000) if direction.rate_mbit else 0.0
    return direction.delay_ms + waits_ms


def _load(lab: Lab, name: str, before: Used, after: Used) -> Load:
    (busy, all_), (busy_before, all_before) = after.busy_share, before.busy_share
    share = (busy - busy_before) / (all_ - all_before) if all_ > all_before else 0.0
    return Load(name, None if lab.plan.time == "virtual" else share, *after.memory_bytes)


def _rate(count: int, seconds: float) -> float:
    """`count` per second; 0 where a machine was restarted in between, so that its counters began at 0 again."""
    return max(0, count) / seconds if seconds > 0 else 0.0


def _ask(lab: Lab, machine: Host | Switch) -> Counters:
    result = lab.provider.run(machine.name, ["sh", "-euc", COUNTERS], timeout_s=LIMIT_S)
    with reading_from(f"host {machine.name}", "what it counts"):
        return parse_counters(parser_text(result.stdout))


def parse_counters(text: str) -> Counters:
    """The counters in the output of COUNTERS. Raises ValueError, IndexError or KeyError for any other text."""
    at, ticks, *rest = text.splitlines()
    times = [int(word) for word in ticks.split()[1:9]]
    memory = {words[0]: int(words[1]) * 1024 for words in map(str.split, rest[:2])}
    sent = {}
    for line in rest[2:]:
        name, _, figures = line.partition(":")
        words = figures.split()
        if len(words) == 16 and words[0].isdigit():
            sent[name.strip()] = int(words[8]), int(words[9])
    drops: dict[str, int] = {}
    queued: dict[str, int] = {}
    marks: dict[str, int] = {}
    for qdisc in documents.document(rest[-1] or "[]"):
        # Linux adds what a qdisc drops and holds to the figures of the tbf above it.
        for of, count in ((drops, qdisc.get("drops", 0)), (queued, qdisc.get("backlog", 0)), (marks, marks_of(qdisc))):
            of[qdisc["dev"]] = max(of.get(qdisc["dev"], 0), int(count))
    idle = times[3] + times[4]
    total = memory["MemTotal:"]
    used = Used((sum(times) - idle, sum(times)), (total - memory["MemAvailable:"], total))
    return Counters(int(at), used, sent, drops, queued, marks)


def marks_of(qdisc: Mapping[str, Any]) -> int:
    """How many frames a discipline has marked. `ecn_mark` is by its law, `ce_mark` beyond the threshold that it was
    given; red has `marked`, and each class of cake counts its own."""
    return sum(int(each.get(name, 0)) for each in (qdisc, *qdisc.get("tins", ())) for name in MARKS)


def wire_counters(state: WireState) -> Carried:
    """The counters of a direction from the state of its wire."""
    return Carried(state.bytes, state.frames, state.dropped, state.lost, state.queued, state.overrun)


def _with_host(of_wire: Carried, sender: Counters, port: str) -> Carried:
    """The counters of a direction with those of the sender's queue in front of the wire."""
    return replace(
        of_wire,
        dropped=of_wire.dropped + sender.drops.get(port, 0),
        queued=of_wire.queued + sender.queued.get(port, 0),
        marked=sender.marks.get(port, 0),
    )


def _by_ends(lab: Lab, machine: str, port: Port, counted: Mapping[str, Counters]) -> Carried:
    """The counters of a direction from both of its hosts: the sender has the queue, the receiver delay and loss."""
    far = next(end for end in lab.plan.machine(port.peer_host).ports if end.link == port.link)
    near, peer = counted[machine], counted.get(port.peer_host)
    sent_bytes, frames = near.sent[port.name]
    lost = 0 if peer is None else peer.drops.get(ifb(far), 0)
    dropped, queued, marked = (of.get(port.name, 0) for of in (near.drops, near.queued, near.marks))
    return Carried(sent_bytes, frames, dropped, lost, queued, marked=marked)

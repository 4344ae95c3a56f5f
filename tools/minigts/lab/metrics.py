"""A lab's counters and gauges as OpenMetrics text, which Prometheus reads (OpenMetrics 1.0).

A counter counts since the lab came up, a gauge is what holds now; the lab's clock stands still in an idle lab in
virtual time. A family without a sample is left out, and so is what a reading does not have: the figures of a queue in a
host, and the round trip of its link, where only wires were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts.lab import current, usage
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.lab.usage import Reading
from minigts.machine.proc import USER_HZ

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OF_QUEUES = frozenset({"dropped", "marked"})
"""The counters of a queue, which may be in a host."""
DASHBOARD = Path(__file__).parent / "dashboard.json"
_BITS, _MEGA, _NS, _MS = 8, 1_000_000, 1_000_000_000, 1000


@dataclass(frozen=True)
class Family:
    """Samples of one name. `unit` is the end of the name, or empty."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    about: str
    samples: tuple[tuple[Mapping[str, str], float], ...]

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {self.about}"
        suffix = "_total" if self.kind == "counter" else ""
        for labels, value in self.samples:
            shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{self.name}{suffix}{{{shown}}} {value:.12g}"


def read(lab: Lab) -> str:
    """The lab's metrics now. Raises HostFailed when a machine does not answer."""
    return text(families(lab, usage.read(lab)))


def text(found: Iterator[Family]) -> str:
    lines = [line for family in found if family.samples for line in family.lines()]
    return "\n".join([*lines, "# EOF", ""])


def dashboard() -> str:
    """A dashboard for Grafana, which shows every family."""
    return DASHBOARD.read_text(encoding="utf-8")


def families(lab: Lab, reading: Reading) -> Iterator[Family]:
    """The families of one reading, in a fixed order."""
    record, own = lab.read_record(), {"lab": lab.name}
    ends = [
        (port, machine.name, {**own, "link": port.link, "from": machine.name, "to": port.peer_host})
        for machine in lab.plan.machines
        for port in machine.ports
        if (machine.name, port.link) in reading.carried
    ]
    now = {(name, port.link): current.port_now(lab.plan, port, record).outgoing for port, name, _ in ends}
    carried = [(labels, reading.carried[name, port.link]) for port, name, labels in ends]
    queues = [
        (labels, reading.carried[name, port.link])
        for port, name, labels in ends
        if not reading.lacks_queue(now[name, port.link])
    ]
    shaped = [(labels, now[name, port.link]) for port, name, labels in ends]
    one_way_ms = {
        end: usage.one_way_ms(way, reading.carried[end]) for end, way in now.items() if not reading.lacks_queue(way)
    }

    def counter(name: str, unit: str, about: str, of: str) -> Family:
        samples = tuple((labels, float(getattr(each, of))) for labels, each in (queues if of in OF_QUEUES else carried))
        return Family(f"minigts_link_{name}", "counter", unit, about, samples)

    clock_s = max(reading.at_ns.values(), default=0) / _NS
    yield Family("minigts_lab_clock_seconds", "gauge", "seconds", "Time of day in the lab.", ((own, clock_s),))
    yield counter("sent_bytes", "bytes", "Bytes sent into a direction of a link, Ethernet headers included.", "bytes")
    yield counter("sent_frames", "frames", "Frames sent into a direction of a link.", "frames")
    yield counter("dropped_frames", "frames", "Frames that the queue in front of the rate dropped.", "dropped")
    yield counter("marked_frames", "frames", "Frames that this queue marked (ECN).", "marked")
    yield counter("lost_frames", "frames", "Frames that the loss of the link took.", "lost")
    yield counter("overrun_frames", "frames", "Frames dropped because a host had no room.", "overrun")
    queued = tuple((labels, float(each.queued)) for labels, each in queues)
    yield Family("minigts_link_queue_bytes", "gauge", "bytes", "Bytes in the queue in front of the rate.", queued)
    rates = tuple((labels, way.rate_mbit * _MEGA / _BITS) for labels, way in shaped if way.rate_mbit is not None)
    about = "Rate of a direction of a link; absent without a limit."
    yield Family("minigts_link_rate_bytes_per_second", "gauge", "bytes_per_second", about, rates)
    loss = tuple((labels, way.loss_percent / 100) for labels, way in shaped)
    yield Family("minigts_link_loss_ratio", "gauge", "ratio", "Loss that is set for a direction of a link.", loss)
    whole = [
        (link.name, (one_way_ms[link.ends[0], link.name] + one_way_ms[link.ends[1], link.name]) / _MS)
        for link in lab.plan.links
        if link.name not in record.cut and all((end, link.name) in one_way_ms for end in link.ends)
    ]
    rtt = tuple(({**own, "link": name}, value) for name, value in whole)
    about = "Round trip of a link by its delays and queues; absent while the link is cut."
    yield Family("minigts_link_rtt_seconds", "gauge", "seconds", about, rtt)
    up = tuple(({**own, "link": link.name}, float(link.name not in record.cut)) for link in lab.plan.links)
    yield Family("minigts_link_up", "gauge", "", "1 for a link that carries frames, 0 for one that is cut.", up)
    yield from _of_hosts(lab, record, reading, own)


def _of_hosts(lab: Lab, record: Record, reading: Reading, own: Mapping[str, str]) -> Iterator[Family]:
    hosts = tuple(({**own, "host": each.name}, float(each.name not in record.silent)) for each in lab.plan.machines)
    yield Family("minigts_host_up", "gauge", "", "1 for a host that is on, 0 for one that is off or paused.", hosts)
    used = [({**own, "host": name}, each) for name, each in reading.used.items()]
    for name, index, about in (("used", 0, "Memory in use on a host."), ("size", 1, "All memory of a host.")):
        samples = tuple((labels, float(each.memory_bytes[index])) for labels, each in used)
        yield Family(f"minigts_host_memory_{name}_bytes", "gauge", "bytes", about, samples)
    if lab.plan.time == "real":  # in virtual time processor time costs the lab nothing
        busy = tuple((labels, each.busy_share[0] / USER_HZ) for labels, each in used)
        about = "Time in which the processors of a host were busy."
        yield Family("minigts_host_processor_busy_seconds", "counter", "seconds", about, busy)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""The queues in front of links' rates, read again and again while a lab works.

A queue is where its discipline is: in the wire, whose clock is asked and no host; or in the host that sends, by `tc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from minigts.errors import reading_from
from minigts.foreign import Foreign
from minigts.lab import current, shown_links
from minigts.lab.lab import Lab
from minigts.lab.usage import LIMIT_S, marks_of
from minigts.language import documents
from minigts.topology import disciplines
from minigts.topology.plan.elements import Port

SHOW = ("tc", "-s", "-j", "qdisc", "show")
End = tuple[str, str]
"""A machine and the link into which it sends."""


@dataclass(frozen=True)
class Queue:
    """A queue at one moment. Counters begin when the lab comes up."""

    bytes: int
    packets: int | None
    """None where the wire has the queue, which counts bytes."""
    dropped: int
    """Packets that the queue dropped."""
    marked: int
    """Packets that it marked (ECN)."""


def readings(
    lab: Lab, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
) -> Iterator[tuple[float, Mapping[End, Queue]]]:
    """Read the queues of these directions now and then each `every_s` of the lab's clock, until `ended` at such a
    moment. Yield how many seconds have passed, and what was read. Raises HostFailed."""
    record = lab.read_record()
    ports = {end: _port(lab, end) for end in ends}
    wired = current.link_carrier(lab) is not None
    inside = [
        end
        for end, port in ports.items()
        if not wired or disciplines.is_in_host(current.port_now(lab.plan, port, record).outgoing)
    ]
    begin_s = lab.provider.now_s()
    for number in count():
        if number:
            lab.provider.sleep_until(begin_s + number * every_s)
        if ended():
            return
        at_s = lab.provider.now_s() - begin_s
        yield round(at_s, 9), _read(lab, ports, inside)


def _read(lab: Lab, ports: Mapping[End, Port], inside: Sequence[End]) -> dict[End, Queue]:
    wires = shown_links.read_wires(lab)
    names = list(dict.fromkeys(name for name, _ in inside))
    asked = [lab.plan.machine(name) for name in names]
    shown = lab.work_on(asked, lambda machine: _ask(lab, machine.name)) if asked else {}
    found = {}
    for (name, link), port in ports.items():
        here = shown[name].get(port.name, Queue(0, 0, 0, 0)) if (name, link) in inside else Queue(0, None, 0, 0)
        if wires is not None:
            wire = wires[name][port.name]
            here = Queue(here.bytes + wire.queued, here.packets, here.dropped + wire.dropped, here.marked)
        found[name, link] = here
    return found


def _ask(lab: Lab, name: str) -> dict[str, Queue]:
    shown = lab.provider.run(name, SHOW, timeout_s=LIMIT_S).stdout
    with reading_from(f"host {name}", "its queues"):
        return parse_queues(shown)


def parse_queues(text: Foreign) -> dict[str, Queue]:
    """The queues in the output of `tc -s -j qdisc show`, by interface. Raises ValueError or KeyError for other text."""
    found: dict[str, Queue] = {}
    for qdisc in documents.document(text):
        was = found.get(qdisc["dev"], Queue(0, 0, 0, 0))
        # Linux adds what a qdisc drops and holds to the figures of the tbf above it.
        found[qdisc["dev"]] = Queue(
            max(was.bytes, int(qdisc.get("backlog", 0))),
            max(was.packets or 0, int(qdisc.get("qlen", 0))),
            max(was.dropped, int(qdisc.get("drops", 0))),
            max(was.marked, marks_of(qdisc)),
        )
    return found


def _port(lab: Lab, end: End) -> Port:
    name, link = end
    return next(port for port in lab.plan.machine(name).ports if port.link == link)

"""The messages to the page about a lab: its topology once, its links and hosts now again and again.

Watching does not advance a virtual clock: then only wires are read, and no host is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from minigts.lab import Lab, current, link_states, shown_links, usage
from minigts.report.topology_figure import positions
from minigts.topology.plan.elements import Switch

_NS = 1_000_000_000


def topology(lab: Lab) -> dict[str, Any]:
    """The message with machines, links, and positions for the drawing: neighbours are 1 apart, y grows downwards."""
    placed = positions(lab.plan)
    highest = max((y for _, y in placed.values()), default=0.0)
    lowest_x = min((x for x, _ in placed.values()), default=0.0)
    return {
        "kind": "topology",
        "lab": lab.name,
        "virtual": lab.time == "virtual",
        "machines": [
            {
                "name": each.name,
                "switch": isinstance(each, Switch),
                "location": each.location or "",
                "x": round(placed[each.name][0] - lowest_x, 3),
                "y": round(highest - placed[each.name][1], 3),
            }
            for each in lab.plan.machines
        ],
        "links": [{"name": link.name, "ends": link.ends} for link in lab.plan.links],
    }


def read(lab: Lab) -> usage.Reading:
    """The lab's counters; from its wires, where it has wires. Raises MinigtsError."""
    wires = shown_links.read_wires(lab)
    if wires is None:
        return usage.read(lab)
    now_ns = round(lab.provider.now_s() * _NS)
    return usage.Reading(
        at_ns={machine.name: now_ns for machine in lab.plan.machines},
        carried={
            (machine.name, port.link): usage.wire_counters(wires[machine.name][port.name])
            for machine in lab.plan.machines
            for port in machine.ports
        },
        used={},
        of_wires_alone=True,
    )


def reading_with_links(first: usage.Reading, after: usage.Reading) -> usage.Reading:
    """The reading from which frames are counted, once links have been added: theirs count from `after` on."""
    return replace(first, carried={**after.carried, **first.carried})


def now(
    lab: Lab, first: usage.Reading, before: usage.Reading, after: usage.Reading, *, hidden: bool = False
) -> dict[str, Any]:
    """The message with the traffic between two readings, and each link's settings. Raises MinigtsError.

    Totals are counted since the reading `first`, so that what the certificate dropped is not among them.
    `total_dropped` is None where a host has the queue in front of a wire, since hosts are not asked then. `hidden`: a
    lesson's student has not predicted a round trip yet, so the page shows none.
    """
    between = usage.activity_between(lab, before, after)
    record = lab.read_record()
    down = dict(link_states.outages_in_words(lab.plan, record))
    set_now = current.plan_now(lab.plan, record)
    unasked = {
        (link.ends[way], link.name)
        for link in set_now.links
        for way, direction in enumerate(set_now.directions(link))
        if after.lacks_queue(direction)
    }
    flows: dict[str, list[Mapping[str, Any]]] = {}
    for flow in between.flows:
        total = _since(first.carried.get((flow.source, flow.link)), after.carried[flow.source, flow.link])
        flows.setdefault(flow.link, []).append(
            asdict(flow)
            | {
                "total_dropped": None if (flow.source, flow.link) in unasked else total.dropped + total.overrun,
                "total_lost": total.lost,
                "total_frames": total.frames,
            }
        )
    return {
        "kind": "now",
        "seconds": between.seconds,
        "clock_s": lab.provider.now_s() if lab.time == "virtual" else None,
        "loads": [asdict(load) for load in between.loads],
        "off": sorted(record.silent),
        "hidden": hidden,
        "links": [
            {
                "name": link.name,
                "up": link.name not in record.cut,
                "outage": down.get(link.name, ""),
                "delay_ms": [way.delay_ms for way in link.ways],
                "loss_percent": [way.loss_percent for way in link.ways],
                "rate_mbit": [way.rate_mbit for way in link.ways],
                "queue_bytes": [way.queue_bytes for way in set_now.directions(link)],
                "declares_rate": any(way.rate_mbit is not None for way in lab.plan.directions(link)),
                "rtt_ms": link.rtt_ms,
                "flows": [flow for end in link.ends for flow in flows.get(link.name, []) if flow["source"] == end],
            }
            for link in set_now.links
        ],
    }


def _since(first: usage.Carried | None, now: usage.Carried) -> usage.Carried:
    """What a direction has carried since the reading `first`. Counters that are smaller now began anew, with their
    host: then all is since."""
    if first is None or first.frames > now.frames:
        return now
    counted = ("bytes", "frames", "dropped", "lost", "overrun", "marked")
    return replace(now, **{name: max(0, getattr(now, name) - getattr(first, name)) for name in counted})

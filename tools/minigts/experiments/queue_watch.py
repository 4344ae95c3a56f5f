"""Which queues a measurement reads while a sample is taken, and what their readings say. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from minigts.errors import InputError
from minigts.experiment_language.model import AnyMeasurement
from minigts.lab.queues import End, Queue
from minigts.language import documents
from minigts.tools.columns import QUEUE_BYTES, QUEUE_DROPPED, QUEUE_MARKED, QUEUE_PACKETS
from minigts.tools.flows import FlowsOptions
from minigts.topology.plan.link_names import link_named
from minigts.topology.plan.plan import Plan

QUEUES = "queues"
"""The name of the part of a raw file with the readings."""


def ends_of(measurement: AnyMeasurement, plan: Plan, paths: Iterable[tuple[str, str]]) -> tuple[End, ...]:
    """The directions whose queues are read while the measurement runs between these hosts: those it names, or the one
    with the lowest rate on each way that something is sent. Raises InputError where there is none with a rate."""
    asked = measurement.queues
    if asked is None:
        return ()
    if asked.of:
        return tuple(dict.fromkeys(_named(plan, name, f"{measurement.name}: queues") for name in asked.of))
    found: dict[End, None] = {}
    for source, target in paths:
        for start, end in _sending(measurement, source, target):
            found |= dict.fromkeys(_narrowest(plan, start, end))
    if not found:
        raise InputError(
            f"{measurement.name}: queues: no link on its way has a rate, so nothing waits there; give a link a "
            "rate, or name one by `of:`"
        )
    return tuple(found)


def _named(plan: Plan, name: str, where: str) -> End:
    try:
        link = link_named(plan, name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    there, back = plan.directions(link)
    first = name == link.name
    if (there if first else back).rate_mbit is None:
        raise InputError(f"{where}: link {name} has no rate in that direction, so nothing waits there")
    return link.ends[0 if first else 1], link.name


def _sending(measurement: AnyMeasurement, source: str, target: str) -> Iterator[tuple[str, str]]:
    options = measurement.options
    if not isinstance(options, FlowsOptions):
        yield source, target
        return
    yield from ((each.source, each.target) for each in options.members(source, target) if each.flow.sends)


def _narrowest(plan: Plan, source: str, target: str) -> Iterator[End]:
    """The direction with the lowest rate on each way from one host to the other; of equal ones the first."""
    for way in plan.path(source, target).each_there if source != target else ():
        here, rates = source, list[tuple[float, End]]()
        for port in plan.senders_on(source, way):
            if port.outgoing.rate_mbit is not None:
                rates.append((port.outgoing.rate_mbit, (here, port.link)))
            here = port.peer_host
        if rates:
            yield min(rates, key=lambda each: each[0])[1]


def line(at_s: float, seen: Mapping[End, Queue]) -> str:
    """One line of a raw file for a reading."""
    queues = [
        {"from": name, "link": link, **{key: value for key, value in vars(queue).items() if value is not None}}
        for (name, link), queue in seen.items()
    ]
    return json.dumps({"at_s": at_s, "queues": queues}) + "\n"


def time_series(text: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """The queues over time, by column of series.csv: what waits at each moment, and what was dropped and marked since
    the one before. With several queues a column begins with its direction, as in `ams-bra from ams queue_bytes`. Raises
    ValueError for text that `line` has not written."""
    found: dict[str, list[tuple[float, float]]] = {}
    before: dict[str, tuple[int, int]] = {}
    for each in text.splitlines():
        told = documents.document(each)
        try:
            at_s, queues = float(told["at_s"]), told["queues"]
            for queue in queues:
                name = f"{queue['link']} from {queue['from']}"
                lead = f"{name} " if len(queues) > 1 else ""
                counts = int(queue["dropped"]), int(queue["marked"])
                waits = [(QUEUE_BYTES, queue["bytes"]), (QUEUE_PACKETS, queue.get("packets"))]
                since = [now - was for now, was in zip(counts, before.get(name, counts), strict=True)]
                rows = [*waits, *zip((QUEUE_DROPPED, QUEUE_MARKED), since, strict=True)]
                for column, value in rows:
                    if value is not None:
                        found.setdefault(f"{lead}{column.name}", []).append((at_s, float(value)))
                before[name] = counts
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no line of queues: {each[:80]!r}") from error
    return found


def readings_before(text: str, length_s: float) -> str:
    """The readings of the first `length_s` seconds."""
    return "".join(f"{each}\n" for each in text.splitlines() if float(documents.document(each)["at_s"]) <= length_s)

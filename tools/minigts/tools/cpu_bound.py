"""Which parts of an experiment depend on the processors alone, and say nothing where processors take no time. Pure.

Each column has the declared properties that it follows from (`Column.follows`), and options that depend on the
processor are marked `OF_THE_PROCESSOR`; this module applies both to a path of a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from minigts.tools.columns import Column, Declared
from minigts.topology.plan.elements import Path
from minigts.topology.plan.plan import Plan
from minigts.topology.tcp import buffers, window_between

MOST_MBIT = 100_000.0
"""The most that TCP may send over links without a rate, in Mbit/s: as much as the fastest rate that a link can have. A
second of it takes a machine minutes."""


@dataclass(frozen=True)
class Mark:
    """A mark in the annotation of a field of a language's model."""

    meaning: str


OF_THE_PROCESSOR = Mark("changes or counts only what the processor of a host has to do, and nothing on the links")


def processor_options(options: BaseModel, varied: Mapping[str, Collection[object]]) -> Iterator[str]:
    """The keys of options that are `OF_THE_PROCESSOR` and have a value other than their default.

    `varied` has the values of options that take several in turn.
    """
    for name, field in type(options).model_fields.items():
        if OF_THE_PROCESSOR in field.metadata:
            word = field.alias or name
            if any(value != field.default for value in varied.get(word, (getattr(options, name),))):
                yield word


def is_the_processors(column: Column, plan: Plan, path: Path) -> bool:
    """Whether nothing that the path's links declare determines the figure."""
    return not any(_declares(plan, path, what) for what in column.follows)


def calls_are_free(plan: Plan, host: str) -> bool:
    """Whether system calls take no time on that host, so that a program there takes time only by waiting."""
    processor = plan.host(host).processor
    return plan.time == "virtual" and not (processor and processor.call_ns)


def is_modelled(plan: Plan, path: Path) -> bool:
    """Whether a host on the path has a modelled processor that takes time for each frame."""
    ends = {end for link in plan.links if link.name in path.crossed for end in link.ends}
    modelled = {host.name for host in plan.hosts if host.processor is not None and host.processor.takes_frames}
    return not modelled.isdisjoint(ends)


def unlimited_tcp(plan: Plan, path: Path) -> str:
    """Why TCP that sends along the path for some time would hardly end, as an error's sentence; empty where it ends.

    Where frames and links take no time, any number of bytes are sent in a moment of the lab's. Calls that take time are
    no limit: one writes 128 KiB.
    """
    if plan.time == "real" or is_modelled(plan, path) or any(way.rate_mbit is not None for way in path.ways):
        return ""
    if any(end.outgoing.jitter_ms or end.outgoing.slot_ms or end.outgoing.trace for end in plan.ends_on(path)):
        return ""
    sender, receiver = (buffers(plan.host(host).sysctls) for host in (path.source, path.target))
    if not path.links or window_between(sender, receiver).mbit(path.rtt_ms)[1] <= MOST_MBIT:
        return ""
    lacks = f"no rate, and a round trip of {path.rtt_ms:g} ms" if path.rtt_ms else "neither a rate nor a delay"
    return (
        f"{path.source} to {path.target}: nothing limits TCP: in virtual time the processor takes no time, and the "
        f"links have {lacks}, so the lab's time would hardly pass; give a link of this path a rate, such as "
        f"`rate: 1gbit`, or the host `processor: {{frame: 10us}}`"
    )


def _declares(plan: Plan, path: Path, what: Declared) -> bool:
    if what == "rate":
        return path.rate_mbit is not None
    if what == "delay":
        return path.rtt_ms > 0
    if what == "loss":
        return path.lossy
    return any(end.outgoing.jitter_ms for end in plan.ends_on(path))

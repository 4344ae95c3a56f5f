"""What of an experiment is the processor's alone, so that it says nothing where the processor is free. Pure.

Each column says what it follows from (`Column.follows`), each option of a tool or of a measurement whether it is
`OF_THE_PROCESSOR`; here is what that means for a path of a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from minigts.tools.columns import Column, Declared
from minigts.topology.parts import Path
from minigts.topology.plan import Plan


@dataclass(frozen=True)
class Mark:
    """Stands beside a field's type in a language's model."""

    meaning: str


OF_THE_PROCESSOR = Mark("changes or counts only what the processor of a host has to do, and nothing on the links")


def of_the_processor(options: BaseModel, varied: Mapping[str, Collection[object]]) -> Iterator[str]:
    """The options, as the language calls them, that are the processor's and have a value other than the usual one.

    `varied` are the values of those that take several in turn.
    """
    for name, field in type(options).model_fields.items():
        if OF_THE_PROCESSOR in field.metadata:
            word = field.alias or name
            if any(value != field.default for value in varied.get(word, (getattr(options, name),))):
                yield word


def is_the_processors(column: Column, plan: Plan, path: Path) -> bool:
    """Whether the figure follows over that path from nothing that the links declare."""
    return not any(_declares(plan, path, what) for what in column.follows)


def calls_are_free(plan: Plan, host: str) -> bool:
    """Whether nothing but what it waits for slows a program on that host down."""
    processor = plan.host(host).processor
    return plan.time == "virtual" and not (processor and processor.call_ns)


def is_modelled(plan: Plan, path: Path) -> bool:
    """Whether a host on the way has a processor that is modelled to be taken by frames that pass its ports."""
    ends = {end for link in plan.links if link.name in path.links for end in link.ends}
    modelled = {host.name for host in plan.hosts if host.processor is not None and host.processor.takes_frames}
    return not modelled.isdisjoint(ends)


def _declares(plan: Plan, path: Path, what: Declared) -> bool:
    if what == "rate":
        return path.rate_mbit is not None
    if what == "delay":
        return path.rtt_ms > 0
    if what == "loss":
        return path.lossy
    return any(end.outgoing.jitter_ms for end in plan.ends_on(path))

"""How links of a lab go down, and come up again, in the lab's record. Pure.

A link that is down carries nothing in either direction. Its ends lose their carrier, as where a cable is pulled, and
their kernels tell whoever asks: routing daemons, bridges, Docker. Or they keep it, as where a light path breaks in its
middle: then nobody is told, and the link is *cut*.
"""

from __future__ import annotations

from collections.abc import Collection

from minigts.lab.record import Record
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan.elements import Port
from minigts.topology.plan.plan import Plan


def down(plan: Plan, record: Record, names: Collection[str], how: Outage) -> Record:
    """The record once these links are down in that way."""
    lost = {(name, end) for name in names for end in plan.ends_of(name) if not how.silent and how.end in (None, end)}
    others = {each for each in record.without_carrier if each[0] not in names}
    return record.model_copy(update={"cut": record.cut | {*names}, "without_carrier": frozenset(others | lost)})


def up(record: Record, names: Collection[str]) -> Record:
    """The record once these links carry frames again, set as before, and their ends have a carrier."""
    others = frozenset(each for each in record.without_carrier if each[0] not in names)
    return record.model_copy(update={"cut": record.cut - {*names}, "without_carrier": others})


def outage(record: Record, name: str) -> Outage | None:
    """How a link is down; None: it is not."""
    ends = record.dark_ends(name)
    if not ends:
        return None if ends is None else SILENT
    return Outage(end=ends[0] if len(ends) == 1 else None)


def same_outages(before: Record, record: Record) -> Record:
    """`record` with those links down, and in those ways, that are so in `before`."""
    return record.model_copy(update={"cut": before.cut, "without_carrier": before.without_carrier})


def differing(before: Record, record: Record) -> frozenset[str]:
    """The links that are down in one of the two records alone, or in another way."""
    return (before.cut ^ record.cut) | {name for name, _ in before.without_carrier ^ record.without_carrier}


def has_carrier(plan: Plan, port: Port, record: Record) -> bool:
    """Whether a port of the plan has a carrier by the record."""
    return (port.link, plan.own_end(port)) not in record.without_carrier

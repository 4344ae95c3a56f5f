"""Which links of a lab carry frames now, which are cut or changed, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.lab import current, outages
from minigts.lab.lab import Lab
from minigts.lab.record import Change, Record
from minigts.language.problems import list_names
from minigts.providers.base import SeesStorms
from minigts.topology.plan import link_names
from minigts.topology.plan.elements import Link, Path
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import switched

ALL_PERCENT = 100.0


def whole_links(plan: Plan, record: Record) -> tuple[Link, ...]:
    """The plan's links that are not cut, between machines that are on."""
    dead = dead_links(plan, record)
    return tuple(link for link in plan.links if link.name not in dead)


def used_links(plan: Plan, record: Record) -> tuple[Link, ...]:
    """The whole links over which frames go by the plan, which can be measured."""
    others = other_ways(plan, record)
    return tuple(link for link in whole_links(plan, record) if link.name not in others)


def whole_paths(plan: Plan, record: Record, sources: int | None = None) -> tuple[Path, ...]:
    """The plan's paths that pass no link that is cut, and no machine that is off, on any of their ways, and that frames
    take; those from the first so many hosts of the file, or None: all."""
    dead = dead_links(plan, record) | other_ways(plan, record).keys()
    return tuple(path for path in plan.walk_paths(sources) if dead.isdisjoint(path.crossed))


def dead_links(plan: Plan, record: Record) -> frozenset[str]:
    """The links that carry nothing: cut links, and links of machines that are off or paused."""
    return record.cut | {link.name for link in plan.links if not record.silent.isdisjoint(link.ends)}


BLOCKED = "blocked by the spanning tree"

TOLD = "under a controller in a ring of switches"


def other_ways(plan: Plan, record: Record) -> dict[str, str]:
    """The links on which frames do not go as the plan's paths do, by name, with the reason: those that the spanning
    tree blocks now, as it goes over no link that carries nothing, and those of rings that a controller decides on."""
    blocked = switched.blocked_links(plan.switches, plan.links, dead_links(plan, record))
    return {
        link.name: BLOCKED if link.name in blocked else TOLD
        for link in plan.links
        if link.name in blocked or link.name in plan.told
    }


def losing_all(plan: Plan, record: Record) -> frozenset[str]:
    """The links with a loss of 100 % in a direction: no request over them is answered."""
    links = current.plan_now(plan, record).links
    return frozenset(link.name for link in links if any(way.loss_percent >= ALL_PERCENT for way in link.ways))


def storms(lab: Lab) -> list[str]:
    """The links on which frames have gone round in a loop of bridges at one moment of the lab, in the plan's order."""
    if not isinstance(lab.provider, SeesStorms):
        return []
    seen = lab.provider.storms()
    struck = {port.link for machine in lab.plan.machines for port in machine.ports if (machine.name, port.name) in seen}
    return [link.name for link in lab.plan.links if link.name in struck]


def storm_in_words(names: Sequence[str]) -> str:
    """What has happened on these links, and what is done about it."""
    loop = "hosts bridge in a loop, without a spanning tree"
    return f"a storm on {list_names(names)}: frames went round at one moment of the lab, as {loop}; most were dropped"


def cut_links(plan: Plan, record: Record) -> list[str]:
    """The links of the plan that are cut, in its order: `ams-bra`."""
    return [link.name for link in plan.links if link.name in record.cut]


def outages_in_words(plan: Plan, record: Record) -> list[tuple[str, str]]:
    """Each of `cut_links`, with `cut`, `down` or `down at ams`."""
    found = ((name, outages.outage(record, name)) for name in cut_links(plan, record))
    return [(name, how.in_words) for name, how in found if how is not None]


def changed_links(plan: Plan, record: Record) -> dict[str, Change]:
    """The links of the plan that are set otherwise than declared, in its order."""
    return {link.name: record.changed[link.name] for link in plan.links if link.name in record.changed}


def how_to_mend(plan: Plan, record: Record) -> dict[str, str]:
    """For every cut link the command that mends it, for every other changed link the one that sets it as declared."""
    changed, cut = changed_links(plan, record), cut_links(plan, record)
    whole = {link.name: f"minigts link {link_argument(plan, link)} up" for link in plan.links}
    return {name: restoring_command(name) for name in changed} | {name: whole[name] for name in cut}


def link_argument(plan: Plan, link: Link) -> str:
    """The link as an argument of `minigts link`: its hosts, or its name where several links join them."""
    return " ".join(link.ends) if len(link_names.links_between(plan, *link.ends)) == 1 else link.name


def restoring_command(name: str) -> str:
    """The command that sets a link as declared."""
    return f"minigts set {name} --reset"

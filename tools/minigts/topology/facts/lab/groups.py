"""Groups of hosts with an overlay each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.fields import matching
from minigts.language.problems import Finding, Location, did_you_mean, list_names, quote
from minigts.language.tree import Data
from minigts.topology.fields import HOST_NAME, HOST_NAME_HINT, NAME, NAME_HINT
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan.elements import Group
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft


def _members(value: object) -> list[object]:
    if not isinstance(value, list) or len(value) < 2:
        got = f"{len(value)} given" if isinstance(value, list) else f"found {quote(value)}"
        raise ValueError(f"a group is a list of two hosts or more, as in [ams, bra]; {got}")
    return value


def written_groups(document: Mapping[str, Data]) -> Mapping[str, Sequence[str]]:
    """Members by group, as written, without entries that the model refuses."""
    groups = document.get("groups")
    written = groups.items() if isinstance(groups, dict) else ()
    return {
        name: [member for member in members if isinstance(member, str)]
        for name, members in written
        if isinstance(members, list)
    }


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    hosts = list(dict.fromkeys(host.name for host in drafted.hosts))
    first: dict[str, str] = {}
    for group, members in written_groups(document).items():
        for index, name in enumerate(members):
            where: Location = ("groups", group, index)
            if name not in hosts and drafted.all_hosts:
                yield where, f"no host {quote(name)}; hosts are {list_names(hosts)}{did_you_mean(name, hosts)}"
            elif name in first:
                also = "there already" if first[name] == group else f"in group {first[name]!r} already"
                yield where, f"host {quote(name)} is {also}; a host is in one group at the most"
            first.setdefault(name, group)


def _planned(written: Mapping[str, tuple[str, ...]] | None) -> tuple[Group, ...]:
    return tuple(Group(name=name, hosts=hosts) for name, hosts in (written or {}).items())


def groups_in_words(plan: Plan) -> str:
    """`a (a1, a2), b (b1, b2)`"""
    return ", ".join(f"{group.name} ({', '.join(group.hosts)})" for group in plan.groups)


_Members: TypeAlias = Annotated[
    tuple[Annotated[str, *matching(HOST_NAME_HINT, HOST_NAME)], ...],
    BeforeValidator(_members),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}),
]
Groups: TypeAlias = Annotated[
    dict[Annotated[str, *matching(NAME_HINT, NAME)], _Members] | None,
    LabSetting(
        planned=_planned,
        elsewhere=Elsewhere(what="groups", why=NOWHERE, has=lambda plan: plan.groups, lost=True),
        problems=_problems,
        title=lambda plan: f"over each by itself: {groups_in_words(plan)}" if plan.groups else "",
        status=lambda plan: {group.name: list(group.hosts) for group in plan.groups},
        page="""\
optional · mapping of names to lists of hosts · default: none, an overlay joins all hosts ·
`groups: {a: [a1, a2], b: [b1, b2]}`

Each group has an overlay network of its own, so several are up at the same time: with `overlay: swarm`, each group is a
Swarm with a manager, addresses and keys of its own. The first host of a group leads it. An overlay, whether the
topology's, `--overlay`'s or an experiment's, is joined, proved, healed and left in each group separately
([why](decisions/overlays.md)).

A group has two hosts or more, which are connected by links, perhaps through hosts of no group. A host is in at most one
group. A host without a group has no overlay; it is measured only with `none`. With groups, a topology may consist of
several unconnected parts whatever its [`routing`](#routing), if each part has a group.
""",
    ),
    Field(
        description="Groups of two hosts or more, by names of your own. Each group gets an overlay of its own. "
        "Default: one overlay over all hosts."
    ),
]

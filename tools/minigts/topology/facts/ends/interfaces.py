"""Names of a link's ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from minigts.language import interface_names
from minigts.language.problems import Finding, path_of, shown
from minigts.topology.end_setting import BY_END, EndSetting, Unfit, strange_ends, texts_of_ends
from minigts.topology.read.declared import DraftLink


def _interface(text: str) -> str:
    if interface_names.number_of(text) is None and (why := interface_names.why_not(text)) is not None:
        raise Unfit(why)
    return text


def _interfaces(value: object) -> dict[str, str]:
    return texts_of_ends(value, "interface name", "eth2 or uplink", _interface, "interfaces' names")


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    """Names of links' ends, each once on its machine."""
    owners: dict[tuple[str, str], str] = {}
    for link in links:
        yield from strange_ends(link, "interfaces", dict(link.interfaces))
        for end, name in link.interfaces:
            if end in link.ends and (end, name) in owners:
                why = f"{shown(name)} is the name of {end}'s end of {owners[end, name]} already"
                yield (*link.where, "interfaces", end), why
            owners.setdefault((end, name), path_of(link.where))


Interfaces: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_interfaces), BY_END] | None,
    EndSetting(problems=_problems),
    Field(
        description="Names for the interfaces of the link's ends, by their names: eth2 is the port of that number, and "
        "uplink stands beside it. Default: the lowest free number from eth1 on, in the order of the links."
    ),
]

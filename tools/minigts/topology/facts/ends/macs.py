"""MAC addresses of a link's ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from minigts.language.blocks import MAC, OWN_MACS
from minigts.language.problems import Finding, path_of
from minigts.topology.end_setting import BY_END, EndSetting, LinkOfPlan, strange_ends, texts_of_ends
from minigts.topology.host_setting import Elsewhere
from minigts.topology.read.declared import DraftLink


def _mac(text: str) -> str:
    if not MAC.fullmatch(text.lower()) or text.lower().startswith(OWN_MACS):
        raise ValueError
    return text.lower()


def _macs(value: object) -> dict[str, str]:
    return texts_of_ends(value, f"one machine's MAC address outside of {OWN_MACS}", "02:00:00:00:00:01", _mac)


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    """MAC addresses of links' ends, each once."""
    owners: dict[str, str] = {}
    for link in links:
        yield from strange_ends(link, "macs", dict(link.macs))
        for name, address in link.macs:
            if name in link.ends and address in owners:
                yield (*link.where, "macs", name), f"{address} is that of {owners[address]} already"
            owners.setdefault(address, f"{name} of {path_of(link.where)}")


def _given(of: LinkOfPlan) -> bool:
    return any(not port.mac.startswith(OWN_MACS) for _, port in of.plan.sending([of.link.name]))


Macs: TypeAlias = Annotated[
    Annotated[dict[str, str], BeforeValidator(_macs), BY_END] | None,
    EndSetting(
        problems=_problems,
        elsewhere=Elsewhere(what="macs", why="no other format has it as we do", has=_given, lost=True),
        page="""\
optional · mapping of ends to MAC addresses · default: by link and end, see [addresses](#addresses) ·
`macs: {ams: 02:00:00:00:00:01}`

The MAC addresses of one or both ends, each of one machine, and none of `02:6d:67:…`, which minigts gives itself.
""",
    ),
    Field(description="MAC addresses of the link's ends, by their names. Default: by link and end."),
]

"""Whether a host has a way out of the lab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host
from minigts.topology.routes.addresses import gateway_in_words


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    if ways_out := [host.name for host in hosts if host.gateway]:
        yield f"has {gateway_in_words(ways_out)}"


Gateway: TypeAlias = Annotated[
    Annotated[bool, *truth("the host has a way out of the lab")] | None,
    HostSetting(
        from_start=lambda host: host.gateway,
        planned=bool,
        sentences=_sentences,
        features=(
            Feature(
                name="a way out",
                asks=lambda host: "gateway: true" if host.gateway else "",
                only="real",
                written=lambda value: value == "true",
                untimely="a way out exists only in real time, and this lab runs in virtual time: what lies "
                "outside does not follow the lab's clock; write `time: real`, or say --time real",
            ),
        ),
        elsewhere=Elsewhere(
            what="gateway",
            why="every other format has a way out of its own",
            has=lambda host: host.gateway,
            lost=False,
        ),
    ),
    Field(
        description="Whether the host reaches the networks of this machine, in real time on uml only. Default: false."
    ),
]

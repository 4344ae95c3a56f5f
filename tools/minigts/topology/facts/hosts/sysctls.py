"""Settings of a host's kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.problems import listed
from minigts.topology import sysctls as tuning
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host


def _of_whole_kernel(host: Host) -> str:
    names = [each.name for each in host.sysctls if tuning.is_of_whole_kernel(each.name)]
    return f"sysctls: {listed(names)}" if names else ""


def _planned(written: Mapping[str, str] | None) -> tuple[tuning.Sysctl, ...]:
    return tuple(tuning.Sysctl(name=name, value=value) for name, value in (written or {}).items())


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    yield from (f"tuned: {words}" for words in tuning.tuning_lines((host.name, host.sysctls) for host in hosts))


Sysctls: TypeAlias = Annotated[
    Annotated[dict[str, str], *tuning.WRITTEN] | None,
    HostSetting(
        by_hand=True,
        planned=_planned,
        sentences=_sentences,
        features=(Feature(name="sysctls of a kernel of its own", asks=_of_whole_kernel),),
        elsewhere=Elsewhere(
            what="sysctls",
            why="each format has them otherwise, or not at all",
            has=lambda host: any(each.name != tuning.ECN for each in host.sysctls),
            lost=True,
        ),
    ),
    Field(
        description="Settings of the host's kernel by their names: buffers, queues, TCP's congestion control. Default: "
        "Linux's own."
    ),
]

"""Whether each host has a name server."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.topology.host_setting import Elsewhere, Feature
from minigts.topology.lab_setting import NOWHERE, LabSetting

Dns: TypeAlias = Annotated[
    Annotated[bool, *truth("each host has a name server")],
    LabSetting(
        features=(
            Feature(
                name="name servers",
                asks=lambda plan: "dns: true" if plan.dns else "",
                instead="leave `dns` out: names are in /etc/hosts",
            ),
        ),
        elsewhere=Elsewhere(what="dns", why=NOWHERE, has=lambda plan: plan.dns, lost=False),
        sentence=lambda plan: "each host has a name server" if plan.dns else "",
        title=lambda plan: "a name server on each host" if plan.dns else "",
        status=lambda plan: plan.dns,
    ),
    Field(
        description="true: each host has a name server, which knows the lab's hosts and containers. Not on mininet. "
        "Default: false, hosts' names are in /etc/hosts alone."
    ),
]

"""What links do over time."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.schedule import Step

Schedule: TypeAlias = Annotated[
    tuple[Step, ...] | None,
    LabSetting(
        planned=None, elsewhere=Elsewhere(what="schedule", why=NOWHERE, has=lambda plan: plan.schedule, lost=True)
    ),
    Field(description="What links do over time, when `minigts play` or a measurement plays it. Default: nothing."),
]

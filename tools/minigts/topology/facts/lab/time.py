"""A lab's clock."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.topology import time
from minigts.topology.lab_setting import LabSetting

Time: TypeAlias = Annotated[
    Annotated[time.Time, choice("a lab's time", "real", "virtual")] | None,
    LabSetting(planned=None),
    Field(
        description="virtual: the lab has a clock of its own, so that results do not depend on the machine; only on "
        "uml. real: the lab has the machine's clock. Default: virtual on uml, else real."
    ),
]

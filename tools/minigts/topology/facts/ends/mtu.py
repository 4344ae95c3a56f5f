"""The largest packet of a link."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import whole
from minigts.topology.end_setting import EndSetting
from minigts.topology.fields import LEAST_MTU, MOST_MTU

Mtu: TypeAlias = Annotated[
    Annotated[int, *whole("an MTU", LEAST_MTU, MOST_MTU)] | None,
    EndSetting(by_hand=True),
    Field(description="Largest IP packet in bytes. Default: 1500."),
]

"""The largest packet of a link."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import whole
from minigts.topology.end_setting import EndSetting
from minigts.topology.fields import LEAST_MTU, MOST_MTU

Mtu: TypeAlias = Annotated[
    Annotated[int, *whole("an MTU", LEAST_MTU, MOST_MTU)] | None,
    EndSetting(
        by_hand=True,
        page="""\
optional · whole number, 576 to 9500 · default: `1500` · `mtu: 9000`

The MTU in bytes: the largest IP packet. All links of a segment, and of switches that are joined, have the same MTU.
""",
    ),
    Field(description="Largest IP packet in bytes. Default: 1500."),
]

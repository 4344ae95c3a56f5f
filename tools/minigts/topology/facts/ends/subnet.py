"""The subnet of a link's segment. It is judged in `read.whole_file`, which knows all of them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.end_setting import EndSetting
from minigts.topology.facts.lab.subnets import Network

Subnet: TypeAlias = Annotated[
    Network | None,
    EndSetting(
        by_hand=True,
        page="""\
optional · IPv4 network of /30 or larger, which overlaps no other · default: the next /24 of `subnets` that no other
link's `subnet` overlaps · `subnet: 192.168.7.0/24`

With switches, any link of the segment may have the key; a trunk, which belongs to several segments, may not.
""",
    ),
    Field(description="IPv4 network of this link's segment. Default: the next free /24 of `subnets`, or a larger one."),
]

"""The VLANs of a link: one untagged, or several of a trunk."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.fields import whole
from minigts.language.problems import shown
from minigts.topology.end_setting import EndSetting
from minigts.topology.frames import VLANS
from minigts.topology.host_setting import Elsewhere


def _some_vlans(value: object) -> list[object]:
    if value == []:
        raise ValueError("no VLAN is given: write them as in [10, 20], or leave vlans out")
    if not isinstance(value, list):
        raise ValueError(f"{shown(value)} is not a list of VLANs: write it as in [10, 20]")
    if twice := [number for number, count in Counter(map(str, value)).items() if count > 1]:
        raise ValueError(f"VLAN {twice[0]} is given twice")
    return value


_Number: TypeAlias = Annotated[int, *whole("a VLAN", VLANS[0], VLANS[-1])]
Vlan: TypeAlias = Annotated[
    _Number | None,
    EndSetting(
        elsewhere=Elsewhere(
            what="vlan",
            why="the hosts of a switch are one segment there",
            has=lambda of: of.link.vlan is not None or of.link.vlans,
            lost=True,
        )
    ),
    Field(
        description="The VLAN that the link is in, untagged, from 1 to 4094: its switch has it as an access port. "
        "Default: none, where no link of the switch has one."
    ),
]
Vlans: TypeAlias = Annotated[
    Annotated[
        tuple[_Number, ...],
        BeforeValidator(_some_vlans),
        WithJsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True}),
    ]
    | None,
    EndSetting(),
    Field(
        description="The VLANs that the link carries tagged, as a trunk; a host has an interface for each, eth1.10. "
        "Default between switches: all that their hosts are in."
    ),
]

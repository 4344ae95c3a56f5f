"""The VLANs of a link: one untagged, or several of a trunk."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.fields import whole
from minigts.language.problems import quote
from minigts.topology.end_setting import EndSetting
from minigts.topology.frames import VLANS
from minigts.topology.host_setting import Elsewhere


def _some_vlans(value: object) -> list[object]:
    if value == []:
        raise ValueError("no VLAN is given: write them as in [10, 20], or leave vlans out")
    if not isinstance(value, list):
        raise ValueError(f"{quote(value)} is not a list of VLANs: write it as in [10, 20]")
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
        ),
        page="""\
optional · whole number, 1 to 4094 · default: none · `vlan: 10`

The VLAN (IEEE 802.1Q) of a link to a switch. Its frames have no tag: the link is an access port of the switch.

A VLAN is a segment: the links of a switch, or of joined switches, with the same VLAN share a subnet, and no frame
passes from one VLAN to another. For hosts to reach each other across VLANs, one host must be in both, with two links or
with a trunk; packets are routed over it. When one link of a switch has a VLAN, the links of all its hosts need one. A
controller is refused there: its flows ignore the ports' VLANs.
""",
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
    EndSetting(
        page="""\
optional · list of whole numbers, 1 to 4094 · default: between switches, all VLANs of their hosts · `vlans: [10, 20]`

The VLANs of a trunk, whose frames are tagged. A host at its end has an interface with an address in each VLAN,
`eth1.10`, `eth1.20`; the delay, rate and loss are those of the one link. `topologies/vlans.yaml` has two VLANs over two
switches and a router on one trunk: `staff1` reaches `guest1`, on the same switch, over four links, the router's twice.

A switch answers in each of its VLANs, so that each link can be measured. Without a [spanning
tree](#switchesspanning_tree) rings of switches are refused within one VLAN: two links between two switches may carry
different VLANs. All links of joined switches have the same MTU; a tag's 4 bytes come on top. In virtual time a link's
rate counts them, in real time `tc` does not: 0.3 % of a full frame.
""",
    ),
    Field(
        description="The VLANs that the link carries tagged, as a trunk; a host has an interface for each, eth1.10. "
        "Default between switches: all that their hosts are in."
    ),
]

"""Where the delays of links come from that say none."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.topology.lab_setting import LabSetting

Delays: TypeAlias = Annotated[
    Annotated[Literal["written", "sites"], choice("where delays come from", "written", "sites")],
    LabSetting(planned=None),
    Field(
        description="sites: a link without a delay gets the one between its ends' locations, which are GTS's sites. "
        "written: it has none. Default: written."
    ),
]

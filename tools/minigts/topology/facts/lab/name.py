"""The name of a topology, which is that of its labs and results."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.lab_setting import LabSetting

LabName: TypeAlias = Annotated[
    Annotated[str, *matching(NAME_HINT, NAME)],
    LabSetting(),
    Field(description="Name of the topology; results and labs carry it."),
]

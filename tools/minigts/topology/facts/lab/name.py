"""The name of a topology, which is that of its labs and results."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.lab_setting import LabSetting

LabName: TypeAlias = Annotated[
    Annotated[str, *matching(NAME_HINT, NAME)],
    LabSetting(
        page="""\
required · 1 to 40 lower-case letters, digits, hyphens, no hyphen first or last · `name: chain6`

The topology's name; labs and results directories are named after it.
""",
    ),
    Field(description="Name of the topology; results and labs carry it."),
]

"""The seed of everything random."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import whole
from minigts.topology.fields import LARGEST_SEED
from minigts.topology.lab_setting import LabSetting

Seed: TypeAlias = Annotated[
    Annotated[int, *whole("a seed", 0, LARGEST_SEED)],
    LabSetting(),
    Field(
        description="Seed of everything random: loss, jitter and the like, and in virtual time the hosts' random "
        "numbers. Default: 0."
    ),
]

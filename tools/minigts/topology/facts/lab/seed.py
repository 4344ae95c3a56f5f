"""The seed of everything random."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import whole
from minigts.topology.fields import LARGEST_SEED
from minigts.topology.lab_setting import LabSetting

Seed: TypeAlias = Annotated[
    Annotated[int, *whole("a seed", 0, LARGEST_SEED)],
    LabSetting(
        page="""\
optional · whole number, 0 to 2147483647 · default: `0` · `seed: 7`

The seed of everything random: of `loss`, `jitter`, `reorder`, `duplicate` and `corrupt`, of the hash by which hosts
choose among equal ways, and in virtual time of the hosts' random numbers ([the whole
list](virtual-time.md#what-is-drawn-of-what)). Each direction of each link has numbers of its own, and others each time
that it is set otherwise. Each `up` starts them again, so that mostly the same packets of the same traffic are lost
([how far that goes](evidence/trust.md#the-same-again)).
""",
    ),
    Field(
        description="Seed of everything random: loss, jitter and the like, and in virtual time the hosts' random "
        "numbers. Default: 0."
    ),
]

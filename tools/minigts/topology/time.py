"""A lab's time. A module of its own, for the command line names it and has to be quick."""

from __future__ import annotations

from typing import Literal, TypeAlias

Time: TypeAlias = Literal["real", "virtual"]
"""What a lab goes by: the machine's clock, or one of its own, which its kernels and links share."""

ANYWHERE: Time = "real"
"""The time that every provider has. It holds where neither file nor command says one and no provider has been chosen;
a chosen one's own best (`providers.registry.best_time`) may be another."""

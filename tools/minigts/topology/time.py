"""A lab's time. It has its own module because the command line imports it and has to start quickly."""

from __future__ import annotations

from typing import Literal, TypeAlias

Time: TypeAlias = Literal["real", "virtual"]
"""A lab's clock: the machine's, or one of its own, which its kernels and links share."""

DEFAULT_TIME: Time = "real"
"""The time that every provider has. It is the default where file and command name none and no provider is chosen; a
chosen provider may have another (`providers.registry.best_time`)."""

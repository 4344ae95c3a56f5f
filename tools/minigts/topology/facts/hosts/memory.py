"""How much memory a host has."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import quantity
from minigts.language.quantities import MEMORY_MB
from minigts.topology.host_setting import Feature, HostSetting

DEFAULT_MEMORY_MB = 512
"""What a host has whose file says nothing of it."""


Memory: TypeAlias = Annotated[
    Annotated[int, *quantity(MEMORY_MB, whole=True)] | None,
    HostSetting(
        by_hand=True,
        field="memory_mb",
        planned=lambda written: written or DEFAULT_MEMORY_MB,
        features=(
            Feature(
                name="memory of its own",
                asks=lambda host: "" if host.memory_mb == DEFAULT_MEMORY_MB else f"memory: {host.memory_mb}MB",
                instead="leave `memory` out",
            ),
        ),
        page="""\
optional · memory · default: `512MB` · `memory: 1GB`

On `mininet`, whose hosts share one kernel's memory, any value but the default is refused.
""",
    ),
    Field(description="Memory of the host, from 128MB (MB counts 2^20 bytes). Default: 512MB."),
]

"""The user's own software on a host: image, packages, files, environment and commands."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.containers import IMAGE
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.software import (
    ENVIRONMENT,
    FILES,
    IMAGE_OF_HOST,
    PACKAGES,
    RUN,
    Commands,
    Environment,
    Files,
    Packages,
)

SOFTWARE = HostSetting(
    field="software",
    elsewhere=Elsewhere(
        what="its software and containers",
        why="no other format has them as we do",
        has=lambda host: host.software is not None or host.containers,
        lost=False,
    ),
)
Image: TypeAlias = Annotated[
    Annotated[str, *IMAGE] | None,
    HostSetting(
        field="software",
        from_start=lambda host: host.software is not None and host.software.root is not None,
        features=(
            Feature(
                name="an image of its own",
                asks=lambda host: "image:" if host.software is not None and host.software.root else "",
                place=lambda host: host.software and host.software.root and host.software.root.place,
            ),
        ),
        elsewhere=SOFTWARE.elsewhere,
    ),
    Field(description=IMAGE_OF_HOST),
]
PackagesKey: TypeAlias = Annotated[
    Packages | None,
    HostSetting(
        field="software",
        from_start=lambda host: host.software is not None and host.software.packages,
        features=(
            Feature(
                name="packages",
                asks=lambda host: "packages:" if host.software is not None and host.software.packages else "",
                place=lambda host: host.software and host.software.packages[0].place,
            ),
        ),
        elsewhere=SOFTWARE.elsewhere,
    ),
    Field(description=PACKAGES),
]
FilesKey: TypeAlias = Annotated[Files | None, SOFTWARE, Field(description=FILES)]
EnvironmentKey: TypeAlias = Annotated[Environment | None, SOFTWARE, Field(description=ENVIRONMENT)]
Run: TypeAlias = Annotated[Commands | None, SOFTWARE, Field(description=RUN)]

"""The kernel that a host has."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
KERNEL_NAME = matching("a kernel's name: write letters, digits, dots and hyphens, as in 7.2.13 or mine", NAME)

Kernel: TypeAlias = Annotated[
    Annotated[str, *KERNEL_NAME] | None,
    HostSetting(
        by_hand=True,
        features=(
            Feature(
                name="a kernel by name",
                asks=lambda host: f"kernel: {host.kernel}" if host.kernel else "",
                instead="leave `kernel` out",
            ),
        ),
        elsewhere=Elsewhere(what="kernel", why="no other format has it", has=lambda host: host.kernel, lost=True),
        page="""\
optional, on `uml` · `standard` or a kernel's name · default: the lab's [`kernel`](#kernel) · `kernel: mine`

The kernel of this host, by a name of `minigts kernel list`. Hosts of one lab may have different ones. [Kernels by
name](kernels.md) says how one is built. An unknown name is an error with its line, but for `plan`, which takes any.
""",
    ),
    Field(
        description="The kernel of the host, by a name of `minigts kernel list`; standard is the one that hosts have "
        "anyway. Default: the lab's `kernel`."
    ),
]

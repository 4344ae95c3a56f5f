"""The kernel of the hosts and switches that have none of their own."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.facts.hosts.kernel import KERNEL_NAME
from minigts.topology.lab_setting import LabSetting

Kernel: TypeAlias = Annotated[
    Annotated[str, *KERNEL_NAME] | None,
    LabSetting(
        planned=None,
        sentence=lambda plan: "; ".join(f"kernel {name}: {', '.join(hosts)}" for name, hosts in plan.kernels.items()),
        page="""\
optional, on `uml` · `standard` or a kernel's name · default: `standard` · `kernel: 7.3.4`

The kernel of every host and switch that has none of its own ([`hosts.*.kernel`](#hostskernel), and `defaults: {host:
{kernel: …}}` for hosts). `--kernel NAME` of `up`, `run`, `explore` and `validate` takes its place, and an experiment
varies it: `vary: {kernel: [standard, mine]}`.
""",
    ),
    Field(
        description="The kernel of every host and switch that has none of its own, by a name of `minigts kernel "
        "list`. Default: standard."
    ),
]

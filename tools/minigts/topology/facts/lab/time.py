"""A lab's clock."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.topology import time
from minigts.topology.lab_setting import LabSetting

Time: TypeAlias = Annotated[
    Annotated[time.Time, choice("a lab's time", "real", "virtual")] | None,
    LabSetting(
        planned=None,
        page="""\
optional · `real` or `virtual` · default: the provider's best, `virtual` on `uml`, `real` on the others · `time: real`

- `virtual`: the lab has a clock of its own, shared by its kernels and links, which runs only while a command or a
  measurement uses the lab. Measured values do not depend on the machine. Only the provider `uml` has virtual time; the
  others refuse a file that asks for it.
- `real`: the lab uses the machine's clock. So the machine shows in every figure: the speed of its processors, and other
  programs that use them.

The first of these that sets the time wins: `--time` of the command, an experiment's
[`time`](experiment-language.md#time), the topology, the provider. `minigts plan`, `up`, `run` and `compare --providers`
take `--time real` or `--time virtual`. `compare --providers` measures on several providers, so it is in real time
unless the file or the option says otherwise.
""",
    ),
    Field(
        description="virtual: the lab has a clock of its own, so that results do not depend on the machine; only on "
        "uml. real: the lab has the machine's clock. Default: virtual on uml, else real."
    ),
]

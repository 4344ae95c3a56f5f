"""The summary's lines, which claims speak of, and what becomes of a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minigts.experiments.model import settings
from minigts.judge.cells import PathCell
from minigts.judge.verdicts import Word
from minigts.tools import COLUMNS

FURTHER = tuple(column.name for column in COLUMNS.values() if column.quantity)
"""Metrics beside a measurement's own value that have a quantity of their own."""


@dataclass(frozen=True, kw_only=True)
class Cell(PathCell):
    """All good samples of one measurement between two hosts over one overlay under one condition."""

    overlay: str
    measurement: str
    quantity: str
    """Latency or throughput; empty where no claim can speak of it."""
    published: float | None
    metric: str = ""
    """Which of the samples' figures, in `unit`: empty for their value, else `loss_percent`, `jitter_ms`, …"""
    condition: str = ""
    """What varies, as `datagram=1400B offload=on`."""
    mtu: int = 1500
    better: Literal["higher", "lower"] | None = None
    """The better direction of the value, where the measurement declares one."""
    tainted: int = 0
    """How many samples were taken while the machine was starved. They count only where there are no others."""

    @property
    def words(self) -> dict[str, str]:
        """Everything that a claim's `where:` may ask for."""
        return {
            "overlay": self.overlay,
            "of": self.measurement,
            "from": self.source,
            "to": self.target,
            "hops": str(self.hops),
            **settings(self.condition),
        }


@dataclass(frozen=True)
class Verdict:
    """What became of one claim over one overlay; `detail` is a sentence with the numbers, `why` what the experiment
    says of the distance to what was published, and `source` whose claim it is, empty for the experiment's own."""

    claim: str
    overlay: str
    verdict: Word
    text: str
    detail: str
    why: str = ""
    source: str = ""
    p: float | None = None
    """The chance of what was measured were the contrary true, corrected by Holm's procedure for all claims of the
    experiment that have a source where it has one. None where no test was made."""
    changed: bool = False
    """Whether the claim is another one than before the run."""

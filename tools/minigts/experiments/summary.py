"""The cells of a summary, to which claims refer, and the verdict on a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minigts.experiment_language.model import settings
from minigts.judge.samples import PathSamples
from minigts.judge.verdicts import Word
from minigts.tools import COLUMNS

FURTHER = tuple(column.name for column in COLUMNS.values() if column.quantity)
"""The metrics, other than a measurement's value, that have a quantity of their own."""


@dataclass(frozen=True, kw_only=True)
class Cell(PathSamples):
    """All good samples of one measurement between two hosts over one overlay under one condition."""

    overlay: str
    measurement: str
    quantity: str
    """The quantity's name, as latency or throughput; empty where no claim can name it."""
    published: float | None
    metric: str = ""
    """Which figure of the samples it holds, in `unit`: empty for their value, or `loss_percent`, `jitter_ms`, …"""
    condition: str = ""
    """The values of what varies, as `datagram=1400B offload=on`."""
    mtu: int = 1500
    mss: int = 1448
    """The payload of a full TCP segment, in bytes."""
    better: Literal["higher", "lower"] | None = None
    """The better direction of the value, where the measurement declares one."""
    tainted: int = 0
    """How many samples were taken while the machine was starved; these count only in a cell without others."""

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
    """The verdict on one claim over one overlay; `detail` is a sentence with the figures, `why` the experiment's reason
    for a difference from what was published, and `source` the claim's document, empty for the experiment's own."""

    claim: str
    overlay: str
    verdict: Word
    text: str
    detail: str
    why: str = ""
    source: str = ""
    p: float | None = None
    """The p value; for a claim with a source corrected by Holm's procedure for all such claims of the experiment. None
    where no test was made."""
    changed: bool = False
    """Whether the claim was changed after the run began."""
    used: float | None = None
    """The largest share of the claim's range that a figure uses, `Range.share`; None without a range."""

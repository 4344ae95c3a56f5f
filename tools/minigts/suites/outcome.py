"""What came of one case of a test, one time."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minigts.suites.suite import Verdict

LONGEST_REASON = 500


class CaseOutcome(BaseModel):
    """A line of results.jsonl."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    test: str
    case: str = ""
    time: Annotated[int, Field(ge=1)]
    """Which time it is of those that were asked for, from 1 on."""
    load: Annotated[int, Field(ge=0)] = 0
    """How many programs kept this machine's processors busy meanwhile."""
    verdict: Verdict
    reason: Annotated[str, Field(max_length=LONGEST_REASON)] = ""
    code: int | None = None
    """The exit code; None if the command did not end."""
    lab_s: float = 0.0
    """How long it took by the host's clock, in seconds."""
    real_s: float = 0.0
    """How long it took by this machine's clock, without its lab's start and end."""
    processor_s: float = 0.0
    """The processor seconds of this machine for that: of the lab, and of minigts."""
    start_s: float = 0.0
    """In the first case of a lab: how long the lab's start took by this machine's clock."""
    start_processor_s: float = 0.0
    """In the first case of a lab: the processor seconds of the lab's start."""
    parts: dict[Verdict, Annotated[int, Field(ge=0)]] = {}
    """How many tests within the case have each verdict, as the case itself said; empty where it is one test."""
    lines: int = 0
    """How many lines it has printed."""
    output_sha256: str = ""
    fingerprint: str = ""
    """In virtual time the fingerprint of the lab's course up to the end of the case."""

    @property
    def name(self) -> str:
        """`tcp_close_no_rst ipv4`"""
        return f"{self.test} {self.case}".strip()

    @property
    def is_bad(self) -> bool:
        return self.verdict in ("failed", "error")

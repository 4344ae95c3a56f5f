"""The example of docs/explore.md whose processes are killed: NATS keeps what it has acknowledged. Where hosts' power is
cut, it does not by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import EXAMPLES, one_seed
from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
TOPOLOGY, TEST = EXAMPLES / "nats.yaml", str(EXAMPLES / "nats" / "test_nats.py")


def test_nats_keeps_what_it_has_acknowledged(program: Program, traces: Traces, tmp_path: Path) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, TEST, EXAMPLES / "nats" / "faults.yaml")
    assert (found.verdict, found.detail) == ("passed", "")
    assert found.faults > 3
    assert not traces.left()


def test_power_cuts_lose_what_nats_has_not_flushed(program: Program, traces: Traces, tmp_path: Path) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, TEST, EXAMPLES / "nats" / "power.yaml", seed=4)
    assert found.verdict == "failed"
    assert "acknowledged values are lost" in found.detail
    assert not traces.left()

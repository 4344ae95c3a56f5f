"""The example of docs/explore.md: Valkey with Sentinel keeps what it acknowledges while nothing fails, and loses some
of it when the network parts, as its authors say."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import EXAMPLES, explored
from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(2400)]
TOPOLOGY, TEST = EXAMPLES / "sentinel.yaml", EXAMPLES / "valkey" / "test_sentinel.py"


def test_without_faults_both_promises_hold(program: Program, traces: Traces, tmp_path: Path) -> None:
    _, found = explored(program, tmp_path, TOPOLOGY, TEST, "--seeds", "1", on="local")
    assert [(each.verdict, each.detail) for each in found.values()] == [("passed", "")]
    assert not traces.left()


def test_a_partition_loses_acknowledged_writes(program: Program, traces: Traces, tmp_path: Path) -> None:
    faults = EXAMPLES / "valkey" / "faults.yaml"
    _, found = explored(program, tmp_path, TOPOLOGY, TEST, "--seeds", "1", faults=faults, on="local")
    assert found[1].verdict == "failed"
    assert "acknowledged writes are lost" in found[1].detail
    assert not traces.left()

"""The example of docs/explore.md: Valkey with Sentinel keeps what it acknowledges while nothing fails, and loses some
of it when the network parts, as its authors say."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from minigts.explore import folder

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1500)]
EXAMPLE = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 1000.0


def explored(program: Program, results: Path, *words: str) -> Path:
    started = program.start("explore", str(EXAMPLE / "sentinel.yaml"), *words, "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    return Path(said.strip().splitlines()[-1])


def test_without_faults_both_promises_hold(program: Program, traces: Traces, tmp_path: Path) -> None:
    made = explored(program, tmp_path, str(EXAMPLE / "valkey" / "test_sentinel.py"), "--seeds", "1")
    assert [(each.verdict, each.detail) for each in folder.outcomes(made).values()] == [("passed", "")]
    assert not traces.left()


def test_a_partition_loses_acknowledged_writes(program: Program, traces: Traces, tmp_path: Path) -> None:
    faults = ("--faults", str(EXAMPLE / "valkey" / "faults.yaml"))
    words = (str(EXAMPLE / "valkey" / "test_sentinel.py"), *faults, "--seeds", "1")
    made = explored(program, tmp_path, *words)
    (outcome,) = folder.outcomes(made).values()
    assert outcome.verdict == "failed"
    assert "acknowledged writes are lost" in outcome.detail
    assert not traces.left()

"""The second example of docs/explore.md: etcd keeps what it promises while hosts are parted, slowed, killed and paused;
and the same judge finds the reads for which it promises less."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from minigts.explore import folder

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
EXAMPLE = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 800.0


def outcome(program: Program, results: Path, test: str) -> tuple[str, str]:
    """The verdict on seed 1, and why."""
    words = (
        str(EXAMPLE / "etcd.yaml"),
        f"{EXAMPLE / 'etcd' / 'test_etcd.py'}::{test}",
        "--faults",
        str(EXAMPLE / "etcd" / "faults.yaml"),
    )
    started = program.start("explore", *words, "--seeds", "1", "--on", "here", "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    (found,) = folder.outcomes(Path(said.strip().splitlines()[-1])).values()
    return found.verdict, found.detail


def test_etcd_keeps_its_promise(program: Program, traces: Traces, tmp_path: Path) -> None:
    assert outcome(program, tmp_path, "test_etcd_keeps_its_promise") == ("passed", "")
    assert not traces.left()


def test_serializable_reads_are_found_to_be_old(program: Program, traces: Traces, tmp_path: Path) -> None:
    verdict, why = outcome(program, tmp_path, "test_serializable_reads_are_of_now")
    assert verdict == "failed"
    assert "operations are not linearizable" in why
    assert not traces.left()

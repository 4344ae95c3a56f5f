"""A bug of etcd 3.5.16 that a seed of docs/explore.md shows, and that does not show without faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from minigts.explore import folder

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
EXAMPLE = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 800.0
SEED = 1


def outcome(program: Program, results: Path, *words: str) -> tuple[str, str]:
    """The verdict on the seed, and why."""
    asked = ("explore", str(EXAMPLE / "etcd-watch.yaml"), str(EXAMPLE / "etcd-watch" / "test_watch.py"), *words)
    started = program.start(*asked, "--seeds", f"{SEED}-{SEED}", "--on", "here", "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    (found,) = folder.outcomes(Path(said.strip().splitlines()[-1])).values()
    return found.verdict, found.detail


def test_a_watch_is_told_of_what_was_before_it(program: Program, traces: Traces, tmp_path: Path) -> None:
    verdict, why = outcome(program, tmp_path, "--faults", str(EXAMPLE / "etcd-watch" / "faults.yaml"))
    assert verdict == "failed"
    assert "watches were told of revisions before the one they began at" in why
    assert not traces.left()


def test_without_faults_each_watch_begins_where_it_was_asked_to(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    assert outcome(program, tmp_path) == ("passed", "")
    assert not traces.left()

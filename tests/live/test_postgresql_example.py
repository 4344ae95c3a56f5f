"""The example with a standby of docs/explore.md: PostgreSQL loses acknowledged writes with an asynchronous standby, and
none with a synchronous one."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from minigts.explore import folder

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
EXAMPLE = PROJECT / "docs" / "examples" / "explore"
PATIENCE_S = 1200.0
SEED = 2
"""The link between the two is lost when the primary ends."""


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        ("test_an_asynchronous_standby_has_all", "failed"),
        ("test_a_synchronous_standby_has_all", "passed"),
        ("test_a_synchronous_standby_has_all_though_clients_cancel", "failed"),
    ],
)
def test_what_a_standby_has(program: Program, traces: Traces, tmp_path: Path, test: str, verdict: str) -> None:
    words = (str(EXAMPLE / "postgresql.yaml"), f"{EXAMPLE / 'postgresql' / 'test_standby.py'}::{test}")
    faults = ("--faults", str(EXAMPLE / "postgresql" / "faults.yaml"))
    started = program.start(
        "explore", *words, *faults, "--seeds", f"{SEED}-{SEED}", "--on", "here", "--results", str(tmp_path)
    )
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    (found,) = folder.outcomes(Path(said.strip().splitlines()[-1])).values()
    assert found.verdict == verdict, found.detail
    assert verdict == "passed" or "acknowledged writes are lost" in found.detail
    assert not traces.left()

"""The examples with PostgreSQL of docs/explore.md: it loses acknowledged writes with an asynchronous standby, and none
with a synchronous one; its serializable transactions have one order, and its repeatable reads have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import EXAMPLES, one_seed
from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(2400)]
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
    words = f"{EXAMPLES / 'postgresql' / 'test_standby.py'}::{test}"
    faults = EXAMPLES / "postgresql" / "faults.yaml"
    found = one_seed(program, tmp_path, EXAMPLES / "postgresql.yaml", words, faults, SEED)
    assert found.verdict == verdict, found.detail
    assert verdict == "passed" or "acknowledged writes are lost" in found.detail
    assert not traces.left()


def test_only_serializable_transactions_have_one_order(program: Program, traces: Traces, tmp_path: Path) -> None:
    words = str(EXAMPLES / "postgresql" / "test_transactions.py")
    found = one_seed(program, tmp_path, EXAMPLES / "postgresql-transactions.yaml", words, None, SEED)
    assert found.verdict == "failed", found.detail
    assert found.detail.endswith("::test_repeatable_reads_have_an_order: AssertionError: G2-item")
    assert not traces.left()

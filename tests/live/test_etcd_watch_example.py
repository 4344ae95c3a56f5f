"""A bug of etcd 3.5.16 that a seed of docs/explore.md shows, and that does not show without faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import EXAMPLES, one_seed
from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
TOPOLOGY, TEST = EXAMPLES / "etcd-watch.yaml", str(EXAMPLES / "etcd-watch" / "test_watch.py")


def test_a_watch_is_told_of_what_was_before_it(program: Program, traces: Traces, tmp_path: Path) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, TEST, EXAMPLES / "etcd-watch" / "faults.yaml")
    assert found.verdict == "failed"
    assert "watches were told of revisions before the one they began at" in found.detail
    assert not traces.left()


def test_without_faults_each_watch_begins_where_it_was_asked_to(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, TEST)
    assert (found.verdict, found.detail) == ("passed", "")
    assert not traces.left()

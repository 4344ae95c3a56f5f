"""The second example of docs/explore.md: etcd keeps what it promises while hosts are parted, slowed, killed and paused;
and the same judge finds the reads for which it promises less. One member alone keeps it while its power is cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from live.explored import EXAMPLES, one_seed
from live.program import Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]
TOPOLOGY, FAULTS = EXAMPLES / "etcd.yaml", EXAMPLES / "etcd" / "faults.yaml"
TEST = f"{EXAMPLES / 'etcd' / 'test_etcd.py'}::"


def test_etcd_keeps_its_promise(program: Program, traces: Traces, tmp_path: Path) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, f"{TEST}test_etcd_keeps_its_promise", FAULTS)
    assert (found.verdict, found.detail) == ("passed", "")
    writes, registers = found.notes
    assert re.fullmatch(r"\d{3,} operations on registers: linearizable", registers), found.notes
    assert re.fullmatch(r"\d{2,} writes were acknowledged, 0 of them are lost", writes), found.notes
    assert not traces.left()


def test_serializable_reads_are_found_to_be_old(program: Program, traces: Traces, tmp_path: Path) -> None:
    found = one_seed(program, tmp_path, TOPOLOGY, f"{TEST}test_serializable_reads_are_of_now", FAULTS)
    assert found.verdict == "failed"
    assert "operations are not linearizable" in found.detail
    assert not traces.left()


def test_one_member_keeps_what_it_has_acknowledged_when_its_power_is_cut(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    test = str(EXAMPLES / "etcd" / "test_alone.py")
    found = one_seed(program, tmp_path, EXAMPLES / "etcd-alone.yaml", test, EXAMPLES / "etcd" / "power.yaml")
    assert (found.verdict, found.detail) == ("passed", "")
    assert found.faults > 2
    assert not traces.left()

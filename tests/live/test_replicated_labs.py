"""Replicates on hosts: labs with other seeds, which are the same bytes whoever takes them, and whenever."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Program, Traces

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(1100)]
REPLICATES = 5
PATIENCE_S = 500.0
TABLES = ("samples.csv", "summary.csv", "claims.json")
FILE = f"""\
name: drawn
title: What chance decides
topology: {TOPOLOGIES / "pair.yaml"}
overlays: [none]
seed: 3
repetitions: 2
replicates: {REPLICATES}
measurements:
  - {{name: latency, tool: ping, paths: [first-to-last], options: {{count: 3}}}}
  - {{name: tcp, tool: iperf3-tcp, paths: [first-to-last], options: {{duration: 1s}}}}
claims:
  - {{throughput: bounded, of: tcp, range: 80 to 95 Mbit/s}}
"""


def done(program: Program, *arguments: str) -> str:
    """What it says; on a busy machine so many labs take their time."""
    started = program.start(*arguments)
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, said + told
    return said


@pytest.mark.nightly
def test_replicates_differ_and_are_the_same_bytes_when_they_are_taken_again(
    program: Program, traces: Traces, tmp_path: Path
) -> None:
    """By two workers at once what one process had taken one after the other."""
    (tmp_path / "drawn.yaml").write_text(FILE)
    said = done(program, "run", str(tmp_path / "drawn.yaml"), "--results", str(tmp_path / "results"))
    (made,) = (tmp_path / "results").iterdir()
    assert "held" in said
    before = {name: (made / name).read_bytes() for name in TABLES}
    with (made / "samples.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    tcp = [
        [row["value"] for row in rows if row["replicate"] == str(n + 1) and row["tool"] == "iperf3-tcp"]
        for n in range(REPLICATES)
    ]
    assert [len(own) for own in tcp] == [2] * REPLICATES
    assert len({tuple(own) for own in tcp}) > 1, "the labs are the same lab"
    (claim,) = json.loads(before["claims.json"])
    assert (claim["verdict"], claim["p"]) == ("held", 1 / 32)
    assert claim["detail"].endswith("; 5 replicates")
    for raw in (made / "raw").iterdir():
        if "replicate-3" in raw.name or ("latency" in raw.name and "replicate-5" in raw.name):
            raw.unlink()
    for name in TABLES:
        (made / name).unlink()
    shutil.rmtree(made / "figures")
    done(program, "run", "--resume", str(made), "--on", "local:2")
    assert {name: (made / name).read_bytes() for name in TABLES} == before
    assert not traces.left()

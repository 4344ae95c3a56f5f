"""Several clients at once ask a container, one sample after the other, on the virtual clock."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from live.program import Program

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]
PATIENCE_S = 300.0
TOPOLOGY = """\
name: three
chain: {hosts: 3, link: {rtt: 2ms, rate: 50mbit}}
"""
EXPERIMENT = """\
name: sessions
title: Sessions one after the other
topology: three.yaml
overlays: [vxlan]
seed: 7
repetitions: 2
measurements:
  - name: streams
    tool: iperf3-udp
    paths: [{from: h1, to: h3}]
    options: {duration: 1s, rate: 2mbit, datagram: 1200B}
    vary: {sessions: [1, 2]}
"""


def test_each_sample_finds_servers_of_its_own(program: Program, tmp_path: Path) -> None:
    """Those of the sample before were on the same ports, and the next begins at the moment at which its client ends."""
    (tmp_path / "three.yaml").write_text(TOPOLOGY)
    file = tmp_path / "experiments" / "sessions.yaml"
    file.parent.mkdir()
    file.write_text(EXPERIMENT)
    started = program.start("run", str(file), "--results", str(tmp_path / "results"))
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    directory = Path(stdout.splitlines()[-1]).parent
    assert not list(directory.glob("raw/*failed*"))
    with (directory / "samples.csv").open(newline="") as stream:
        sent_mbit = sorted((row["sessions"], round(float(row["value"]))) for row in csv.DictReader(stream))
    assert sent_mbit == [("1", 2), ("1", 2), ("2", 4), ("2", 4)]

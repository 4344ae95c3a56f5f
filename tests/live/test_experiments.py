"""An experiment from its file to its verdicts, on hosts: the claims of the files in experiments/ are assertions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from live.program import PROJECT, Program

pytestmark = pytest.mark.uml
PATIENCE_S = 300.0
"""A starved machine takes each sample three times."""


def test_an_overlay_reaches_of_its_hosts_what_its_headers_leave(program: Program, tmp_path: Path) -> None:
    file = PROJECT / "experiments" / "overlay-host.yaml"
    only = ("--only", "none", "--only", "swarm")
    started = program.start("run", str(file), "--quick", *only, "--results", str(tmp_path / "results"))
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    page = Path(stdout.splitlines()[-1])
    with (page.parent / "samples.csv").open(newline="") as stream:
        samples = list(csv.DictReader(stream))
    verdicts = json.loads((page.parent / "claims.json").read_text())
    assert [(row["ok"], float(row["value"]) > 0) for row in samples] == [("true", True)] * 4
    assert {verdict["overlay"] for verdict in verdicts} == {"none", "swarm"}
    assert page.stat().st_size > 10_000
    if not any(row["tainted"] for row in samples):
        failed = [verdict for verdict in verdicts if verdict["verdict"] == "did not"]
        assert failed == []

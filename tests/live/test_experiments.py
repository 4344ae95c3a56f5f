"""A campaign from its files to its verdicts, on hosts: the claims of the files in experiments/ are assertions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from live.program import PROJECT, Program

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(700)]
CLAIMS = {"overlay-host": 3, "placement": 1}
"""How many verdicts there are on what `--only` leaves."""
PATIENCE_S = 600.0
"""A starved machine takes samples several times."""


def test_claims_hold_on_hosts(program: Program, tmp_path: Path) -> None:
    """An overlay reaches of its hosts what its headers leave, and a container with its host's network all of it."""
    files = [str(PROJECT / "experiments" / f"{name}.yaml") for name in ("overlay-host", "placement")]
    only = [word for name in ("none", "host", "swarm") for word in ("--only", name)]
    started = program.start(
        "run", *files, "--quick", "--time", "virtual", *only, "--results", str(tmp_path / "results")
    )
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    page = Path(stdout.splitlines()[-1])
    assert page.stat().st_size > 10_000
    missed: list[dict[str, str]] = []
    tainted: list[str] = []
    for name, overlays, samples in (("overlay-host", {"none", "swarm"}, 4), ("placement", {"none", "host"}, 4)):
        with (page.parent / name / "samples.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [(row["ok"], float(row["value"]) > 0) for row in rows] == [("true", True)] * samples
        assert {row["overlay"] for row in rows} == overlays
        verdicts = json.loads((page.parent / name / "claims.json").read_text())
        measured = [each for each in verdicts if "measured" not in each["detail"]]
        assert len(measured) == CLAIMS[name]
        missed += [each for each in measured if each["verdict"] != "held"]
        tainted += [row["tainted"] for row in rows if row["tainted"]]
    if missed and tainted:
        pytest.skip(f"the machine did something else meanwhile ({tainted[0]}): {missed}")
    assert missed == []

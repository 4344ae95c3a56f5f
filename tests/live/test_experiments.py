"""A campaign from its files to its verdicts, on hosts: the claims of the files in experiments/ are assertions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from live.program import PROJECT, Program

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(700)]
SLOWER = {"overlay-host": ("cloud-pair", "790mbit", "79mbit"), "placement": ("lan-gigabit", "1gbit", "100mbit")}
"""Each experiment's topology, and its rate: a tenth of the frames, and the same claims, which are about shares."""
CLAIMS = {"overlay-host": 3, "placement": 1}
"""How many verdicts there are on what `--only` leaves."""
PATIENCE_S = 600.0
"""A starved machine takes samples several times."""


def slower(place: Path, name: str) -> str:
    """The experiment, on its topology with the lower rate."""
    topology, rate, lower = SLOWER[name]
    text = (PROJECT / "topologies" / f"{topology}.yaml").read_text()
    experiment = (PROJECT / "experiments" / f"{name}.yaml").read_text()
    assert f"rate: {rate}" in text and f"topologies/{topology}.yaml" in experiment
    (place / f"{topology}.yaml").write_text(text.replace(f"rate: {rate}", f"rate: {lower}"))
    (place / f"{name}.yaml").write_text(
        experiment.replace(f"topologies/{topology}.yaml", str(place / f"{topology}.yaml"))
    )
    return str(place / f"{name}.yaml")


def test_claims_hold_on_hosts(program: Program, tmp_path: Path) -> None:
    """An overlay reaches of its hosts what its headers leave, and a container with its host's network all of it."""
    files = [slower(tmp_path, name) for name in SLOWER]
    only = [word for name in ("none", "host", "swarm") for word in ("--only", name)]
    started = program.start(
        "run", *files, "--quick", "--time", "virtual", *only, "--results", str(tmp_path / "results")
    )
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    page = Path(stdout.splitlines()[-1])
    assert page.stat().st_size > 10_000
    missed: list[dict[str, str]] = []
    for name, overlays, samples in (("overlay-host", {"none", "swarm"}, 6), ("placement", {"none", "host"}, 6)):
        with (page.parent / name / "samples.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [(row["ok"], float(row["value"]) > 0) for row in rows] == [("true", True)] * samples
        assert {row["overlay"] for row in rows} == overlays
        verdicts = json.loads((page.parent / name / "claims.json").read_text())
        measured = [each for each in verdicts if "measured" not in each["detail"]]
        assert len(measured) == CLAIMS[name]
        missed += [each for each in measured if each["verdict"] not in ("held", "vacuous")]
        assert {row["tainted"] for row in rows} == {""}, "in virtual time nothing of the machine's is in a sample"
    assert missed == []

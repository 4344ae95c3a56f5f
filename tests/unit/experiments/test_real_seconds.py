"""How long samples take this machine: by labs' speed at first, and then by what was seen here."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.artifacts import overlay_programs
from minigts.experiments import prepare, real_seconds
from minigts.machine import times_seen
from minigts.session import campaign


def test_a_dry_run_learns_how_long_samples_take_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    file = tmp_path / "two.yaml"
    file.write_text(
        "name: two\ntitle: t\ntopology: topologies/pair.yaml\noverlays: [none, flannel]\nseed: 1\nrepetitions: 3\n"
        "measurements:\n  - {name: echoes, tool: ping, paths: [first-to-last], rest: 400s}\n"
    )
    [prepared] = prepare.prepare_all([file], paper=False, quick=False, only=(), time="virtual")
    before = prepared.real_seconds
    own = [each for each in prepared.samples if each.overlay == "none"]
    real_seconds.remember(prepared.experiment, prepared.plan, own, 3000.0)
    times_seen.add("building", "programs of flannel", 440.0)
    after = prepared.real_seconds
    assert before < 60, "by the speed of labs alone"
    assert after > 6000, "three samples took 3000 s, and three more of that tool are thought to take as long"
    real_seconds.remember_joining("flannel", 500.0)
    assert after + 490 < prepared.real_seconds < after + 500
    monkeypatch.setattr(overlay_programs, "missing_build", lambda recipe: f"programs of {recipe.parent.name}")
    said = campaign.missing_builds([prepared], campaign.Means())
    assert said[-1] == "the programs of flannel are built first, once: that took 7 min 20 s here"

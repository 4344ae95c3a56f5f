"""Before a lab is brought up: whether there is the memory for it, and who is told that they are root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.experiments import prepare
from minigts.machine import limits
from minigts.machine.limits import MemoryLimit
from minigts.providers import registry
from minigts.session import bring_up, plans

HUGE = """name: huge
hosts: {a: {memory: 1024GB}, b: }
links: [{ends: [a, b], rtt: 4ms, rate: 50mbit}]
"""
EXPERIMENT = """name: small
title: A small one
topology: huge.yaml
overlays: [none, swarm]
seed: 1
repetitions: 1
measurements:
  - {name: tcp, tool: iperf3-tcp, paths: [{from: a, to: b}], options: {duration: 1s}}
"""
runner = CliRunner()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a topology and an experiment, and state and cache that are empty."""
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"MINIGTS_{name}", str(tmp_path / name.lower()))
    (tmp_path / "huge.yaml").write_text(HUGE)
    (tmp_path / "small.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("argv", [["up", "huge.yaml"], ["run", "small.yaml", "--results", "results"]])
def test_what_no_machine_has_is_refused_before_anything_is_started(place: Path, argv: list[str]) -> None:
    done = runner.invoke(app, argv)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "a: `memory: 1048576MB` is more than this machine has in total" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in place.iterdir()) == ["huge.yaml", "small.yaml"]


def test_an_experiment_needs_room_for_the_heaviest_of_its_overlays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "huge.yaml").write_text(HUGE.replace("1024GB", "512MB"))
    monkeypatch.setattr(limits, "memory_limits", lambda: (MemoryLimit("a group", 250, 8000, "give it more"),))
    done = runner.invoke(app, ["run", "small.yaml", "--results", "results"])
    assert done.exit_code == 3
    assert "2 kernels with the overlay swarm need 284 MB of memory; 250 MB are free by a group" in done.stderr
    (prepared,) = prepare.prepare_all([place / "small.yaml"], paper=False, quick=False, only=["none"])
    ((plan, overlays),) = prepare.overlays_by_plan([prepared])
    assert overlays == ("none",)
    assert plan == prepared.plan
    bring_up.require_room(plan, registry.make("uml", Path(), plan.time), overlays)


def test_one_that_is_up_has_its_room(place: Path) -> None:
    plan = plans.planned(place / "huge.yaml")
    (place / "state" / "labs" / "huge").mkdir(parents=True)
    assert not bring_up.ready(bring_up.Request(plan)).is_new


@pytest.mark.parametrize(("provider", "user", "warned"), [("uml", 0, 1), ("uml", 1000, 0), ("vagrant", 0, 0)])
def test_root_is_told_once_that_a_plain_user_is_enough(
    monkeypatch: pytest.MonkeyPatch, provider: str, user: int, warned: int
) -> None:
    assert provider in registry.names()
    monkeypatch.setattr(os, "geteuid", lambda: user)
    said = bring_up.root_note(registry.make(provider, Path()))
    assert ["plain user is enough" in line for line in said] == [True] * warned

"""Every bench can still be loaded: what it imports of the program is where it looks for it."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path

import pytest

from minigts.topology.read.load import load

PROJECT = Path(__file__).parents[2]
BENCHES = sorted(path.stem for path in (PROJECT / "bench").glob("*.py"))


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_can_be_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT)
    importlib.import_module(f"bench.{name}")


@pytest.mark.parametrize("time", ["real", "virtual"])
def test_the_comparison_of_overlays_has_the_time_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, time: str) -> None:
    monkeypatch.syspath_prepend(PROJECT)
    overlays = importlib.import_module("bench.overlays")
    plan = overlays.plan_at(PROJECT / "topologies" / "pair.yaml", "10mbit", time)
    assert (plan.time, {way.rate_mbit for link in plan.links for way in plan.directions(link)}) == (time, {10})


def test_the_processor_of_the_gts_chain_is_the_one_that_the_bench_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT)
    fit = importlib.import_module("bench.fit")
    with fit.DATA.open(newline="") as file:
        model = fit.fitted(list(csv.DictReader(file)))
    for host in load(PROJECT / "topologies" / "chain6-gts.yaml").hosts:
        assert host.processor is not None
        assert host.processor.frame_ns == pytest.approx(model.frame_us * 1000, abs=50)
        assert host.processor.call_ns * fit.CALLS_OF_A_DATAGRAM == pytest.approx(model.datagram_us * 1000, abs=150)

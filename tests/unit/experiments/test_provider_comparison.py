"""What a comparison of providers makes of its samples. What it measures needs hosts, and is tested there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minigts.experiments import provider_comparison
from minigts.experiments.provider_comparison import ProviderComparison, ProviderSample
from minigts.topology.read.load import parse


def test_medians_and_intervals_stand_side_by_side() -> None:
    samples = tuple(
        ProviderSample(provider, "bring-up", "s", value)
        for provider, values in {"uml": (4.0, 5.0, 9.0), "mininet": (2.0,)}.items()
        for value in values
    )
    found = ProviderComparison("pair", "a-b", 3, samples, {"vagrant": "libvirtd: not installed"})
    ((quantity, unit, by_provider),) = found.rows()
    assert (quantity, unit, list(by_provider)) == ("bring-up", "s", ["uml", "mininet"])
    assert (by_provider["uml"].median, by_provider["uml"].low, by_provider["uml"].high) == (5.0, 4.0, 9.0)
    assert (by_provider["mininet"].median, by_provider["mininet"].low) == (2.0, None)


def test_the_longest_path_that_is_reachable_is_measured() -> None:
    text = "name: x\nchain: {hosts: 4}\n"
    assert provider_comparison._longest(parse(text, "f.yaml")).target == "h4"
    assert provider_comparison._longest(parse(f"{text}routing: neighbours\n", "f.yaml")).target == "h2"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this kernel sums no mappings up")
def test_memory_grows_by_what_a_process_takes() -> None:
    before = provider_comparison.memory_mib([os.getpid()])
    block = bytearray(os.urandom(1 << 20) * 64)
    assert provider_comparison.memory_mib([os.getpid()]) - before == pytest.approx(64, abs=8)
    assert len(block) == 64 << 20

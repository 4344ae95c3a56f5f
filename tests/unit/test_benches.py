"""Every bench can still be loaded: what it imports of the program is where it looks for it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BENCHES = sorted(path.stem for path in (PROJECT / "bench").glob("*.py"))


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_can_be_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT)
    importlib.import_module(f"bench.{name}")

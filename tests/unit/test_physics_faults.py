"""The faults of bench/physics.py: each still has its place in the source, and experiments whose laws it bends."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def physics(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PROJECT)
    return importlib.import_module("bench.physics")


def test_each_fault_changes_one_place_that_is_there(physics: Any) -> None:
    assert len({fault.name for fault in physics.FAULTS}) == len(physics.FAULTS) >= 20
    for fault in physics.FAULTS:
        text = (PROJECT / fault.file).read_text(encoding="utf-8")
        assert physics.with_fault(fault, text) != text


def test_a_fault_whose_place_has_gone_is_an_error(physics: Any) -> None:
    with pytest.raises(ValueError, match="has 0 places"):
        physics.with_fault(physics.FAULTS[0], "nothing of it")


def test_its_experiments_are_there(physics: Any) -> None:
    known = {file.stem for file in (PROJECT / "experiments" / "validation").glob("*.yaml")}
    for fault in physics.FAULTS:
        assert fault.of and known >= set(fault.of)

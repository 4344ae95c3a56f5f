"""The experiments that the page offers, and the command that runs one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.serve import runs

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def test_experiments_in_folders_are_offered_after_those_in_none() -> None:
    names = runs.names()
    assert sorted(names) == sorted(
        str(file.relative_to(EXPERIMENTS).with_suffix("")) for file in EXPERIMENTS.rglob("*.yaml")
    )
    assert {"multihop", "classics/bufferbloat", "validation/loss-law"} <= {*names}
    in_folder = ["/" in name for name in names]
    assert in_folder == sorted(in_folder)


@pytest.mark.parametrize("name", ["multihop", "classics/bufferbloat"])
def test_an_experiment_is_run_by_its_own_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Sequence[str]]] = []
    monkeypatch.setattr(runs.Runs, "start", lambda _, own, words: started.append((own, words)))
    runs.Runs(tmp_path).begin(name)
    ((own, words),) = started
    assert own == name
    assert Path(words[-1]).resolve() == EXPERIMENTS / f"{name}.yaml"


@pytest.mark.parametrize("name", ["bufferbloat", "classics", "../experiments/multihop", "classics/../multihop", ""])
def test_no_other_name_is_run(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such experiment"):
        runs.Runs(tmp_path).begin(name)

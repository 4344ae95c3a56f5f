"""Broken results folders: a few hundred in every test run, `--fuzz N` for more; tests/unit/fuzz_results.py has them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz_results import judge, mutants, whole_folders


def test_broken_results_are_refused_or_read_and_never_a_traceback(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    number = max(1, request.config.getoption("--fuzz") // 20)
    wholes = whole_folders(tmp_path / "whole")
    (tmp_path / "mutants").mkdir()
    broken = mutants(wholes, tmp_path / "mutants", random.Random(2017))
    found = [
        (mutant.done, judge(mutant, drawn=count == 0)) for count, mutant in zip(range(number), broken, strict=False)
    ]
    assert [(done, judgement.wrong) for done, judgement in found if judgement.wrong] == []
    assert {judgement.accepted for _, judgement in found} == {True, False}

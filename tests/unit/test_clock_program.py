"""The clock's own tests, which are Rust's: run by cargo where it is, and where what the clock uses can be had."""

from __future__ import annotations

import os

import pytest

import crates
from minigts import paths

CRATE = paths.project_root() / "provision" / "clock"
FOR_EACH_CHANGE = {"CASES": 25, "SCHEDULES": 10, "STARTS": 100}
"""Random cases of each property, schedules beside the model, and kernels that end in turn; `.ci/run nightly` asks for
more."""


@pytest.fixture
def cargo(request: pytest.FixtureRequest) -> crates.Cargo:
    return crates.of(CRATE, request.config)


def test_the_clocks_own_tests_pass(
    cargo: crates.Cargo, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in FOR_EACH_CHANGE.items():
        monkeypatch.setenv(name, os.environ.get(name, str(number)))
    crates.own_tests(cargo, CRATE, request.config)

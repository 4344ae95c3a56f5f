"""The clock's own tests, which are Rust's: run by cargo where it is, and where what the clock uses can be had."""

from __future__ import annotations

import re

import pytest

import crates
from minigts import paths

CRATE = paths.project_root() / "provision" / "clock"
TEST_S = 900.0


@pytest.fixture
def cargo(request: pytest.FixtureRequest) -> crates.Cargo:
    return crates.of(CRATE, request.config)


def test_the_clocks_own_tests_pass(cargo: crates.Cargo) -> None:
    answer = cargo("test", "--offline", "--locked", timeout_s=TEST_S).stdout
    passed = re.findall(r"test result: ok\. (\d+) passed", answer)
    assert sum(map(int, passed)) > 0, answer

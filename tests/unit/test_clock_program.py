"""The clock's own tests, which are Rust's: run by cargo where it is, and where what the clock uses can be had."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest

from minigts import paths
from minigts.machine import shell
from minigts.machine.shell import Completed

CRATE = paths.project_root() / "provision" / "clock"
OLDEST = (1, 85)
"""Debian's, with which provision/clock compiles it."""
FETCH_S, TEST_S = 120.0, 900.0


@pytest.fixture
def cargo() -> Callable[..., Completed]:
    program = shutil.which("cargo")
    if program is None:
        pytest.skip("cargo is not installed")
    version = re.search(r"cargo (\d+)\.(\d+)", shell.run([program, "--version"], timeout_s=60).stdout)
    assert version is not None
    if (int(version[1]), int(version[2])) < OLDEST:
        pytest.skip(f"{version[0]} is too old: it takes {OLDEST[0]}.{OLDEST[1]}")
    env = {"CARGO_TARGET_DIR": str(paths.cache_root() / "cargo"), "CARGO_TERM_COLOR": "never"}

    def run(verb: str, *words: str, timeout_s: float, check: bool = True) -> Completed:
        argv = [program, verb, "--manifest-path", str(CRATE / "Cargo.toml"), *words]
        return shell.run(argv, timeout_s=timeout_s, env=env, check=check)

    return run


def test_the_clocks_own_tests_pass(cargo: Callable[..., Completed]) -> None:
    cargo("metadata", "--no-deps", "--format-version=1", timeout_s=60)  # so a broken manifest is no lack of crates
    fetched = cargo("fetch", "--locked", timeout_s=FETCH_S, check=False)
    assert "--locked" not in fetched.stderr, fetched.stderr  # Cargo.toml and Cargo.lock go together
    if fetched.code != 0:
        pytest.skip("what the clock uses cannot be fetched")
    answer = cargo("test", "--offline", "--locked", timeout_s=TEST_S).stdout
    passed = re.findall(r"test result: ok\. (\d+) passed", answer)
    assert sum(map(int, passed)) > 0, answer

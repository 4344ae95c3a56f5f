"""The Rust programs' own tests are run by cargo, where there is one that is new enough and their crates can be had."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from minigts import paths
from minigts.machine import shell
from minigts.machine.shell import Completed

CARGO = "cargo"
OLDEST = (1, 85)
"""Debian 13's, with which the recipes in provision/ compile them."""
FETCH_S = 120.0
Cargo = Callable[..., Completed]


@cache
def lacking() -> tuple[str, ...]:
    """What this machine lacks of it."""
    program = shutil.which(CARGO)
    if program is None:
        return ("cargo is not installed",)
    version = re.search(r"cargo (\d+)\.(\d+)", shell.run([program, "--version"], timeout_s=60).stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        return (f"{version[0] if version else program} is too old: it takes {OLDEST[0]}.{OLDEST[1]}",)
    return ()


def of(crate: Path, config: pytest.Config) -> Cargo:
    """Runs `cargo VERB WORDS…` for a crate that has been fetched. Skips the test where it cannot be, or fails it under
    `--require=cargo`."""
    env = {"CARGO_TARGET_DIR": str(paths.cache_root() / "cargo"), "CARGO_TERM_COLOR": "never"}

    def run(verb: str, *words: str, timeout_s: float, check: bool = True) -> Completed:
        argv = [CARGO, verb, "--manifest-path", str(crate / "Cargo.toml"), *words]
        return shell.run(argv, timeout_s=timeout_s, env=env, check=check)

    run("metadata", "--no-deps", "--format-version=1", timeout_s=60)  # so a broken manifest is no lack of crates
    fetched = run("fetch", "--locked", timeout_s=FETCH_S, check=False)
    assert "--locked" not in fetched.stderr, fetched.stderr  # Cargo.toml and Cargo.lock go together
    if fetched.code != 0:
        lack = pytest.fail if CARGO in config.getoption("--require") else pytest.skip
        lack(f"what {crate.name} uses cannot be fetched: {fetched.stderr.strip()[-200:]}")
    return run

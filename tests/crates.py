"""The Rust programs' own tests are run by cargo, where there is one that is new enough and their crates can be had.

Their random cases are drawn by seeds that stay the same, so what passed passes again: for each change a crate's tests
are run if a file of the crate, the compiler or a number of cases is another one than when they last passed here.
"""

from __future__ import annotations

import os
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
TEST_S = 900.0
NUMBERS = ("CASES", "SCHEDULES", "LIES", "STARTS", "INPUTS", "SEED")
"""What the environment may ask of a crate's tests."""
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
    env = {"CARGO_TARGET_DIR": str(_built()), "CARGO_TERM_COLOR": "never", "CARGO_PROFILE_DEV_DEBUG": "0"}

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


def own_tests(cargo: Cargo, crate: Path, config: pytest.Config) -> None:
    """Has cargo run a crate's own tests; skips the test where they passed before as they are, but for `--nightly`."""
    kept = _built() / "passed" / f"{crate.name}-{_key(crate)}"
    if kept.exists() and not config.getoption("--nightly"):
        pytest.skip(f"the tests of {crate.name} passed here with the same files: {kept.read_text().strip()}")
    answer = cargo("test", "--offline", "--locked", timeout_s=TEST_S).stdout
    passed = sum(map(int, re.findall(r"test result: ok\. (\d+) passed", answer)))
    assert passed > 0, answer
    kept.parent.mkdir(parents=True, exist_ok=True)
    paths.write_whole(kept, f"{passed} tests\n")


def _built() -> Path:
    """The directory of what cargo has compiled."""
    return paths.cache_root() / "cargo"


def _key(crate: Path) -> str:
    """A digest of all on which the answer of the crate's tests depends."""
    asked = [f"{name}={os.environ.get(name)}\n" for name in NUMBERS]
    compiler = shell.run([CARGO, "--version", "--verbose"], timeout_s=60).stdout
    files = sorted(each for each in crate.rglob("*") if each.is_file() and "target" not in each.parts)
    return paths.content_key(((str(file.relative_to(crate)), file) for file in files), "".join([compiler, *asked]))

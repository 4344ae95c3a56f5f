"""Wheels of the launcher's Python packages, for a machine that cannot fetch them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from minigts import paths
from minigts.errors import CommandFailed, EnvironmentLacks
from minigts.machine import shell

LOCK = "requirements.lock"
TIMEOUT_S = 600.0


def fetch(directory: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Fetch the wheels of the checkout's lock, for this Python and this kind of machine, into an empty directory.

    Returns their paths. Raises EnvironmentLacks where there is no lock, no pip or no network.
    """
    lock = paths.project_root() / LOCK
    if not lock.is_file():
        raise EnvironmentLacks("the lock of Python packages is in a checkout: ./minigts image export FILE --wheels")
    progress(f"fetching the wheels of {LOCK} for Python {sys.version_info.major}.{sys.version_info.minor}")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    only = ["--only-binary", ":all:", "--require-hashes", "--no-deps", "-r", str(lock), "-d", str(directory)]
    try:
        shell.run([*pip, *only], timeout_s=TIMEOUT_S)
    except CommandFailed as error:
        raise EnvironmentLacks(f"the wheels could not be fetched; without --wheels none are\n{error}") from error
    return tuple(sorted(directory.glob("*.whl")))

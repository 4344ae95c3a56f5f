"""Runs what might signal or delete too much where it can only reach what the test itself made."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMESPACES = ("unshare", "-pmf", "--mount-proc")
OF_ONES_OWN = ("unshare", "-Urpmf", "--mount-proc")
"""The same for a plain user, where the kernel lets one have a user namespace."""
AS_A_PLAIN_USER = ("unshare", "-pmf", "--mount-proc", "--map-user=1000", "--map-group=1000")
"""The same with a user namespace in which one is not root."""
TOOLS = Path(__file__).parents[2] / "tools"
LIMIT_S = 60.0


@functools.cache
def _possible(*choices: tuple[str, ...]) -> tuple[str, ...] | None:
    for argv in choices:
        try:
            if subprocess.run([*argv, "true"], capture_output=True, check=False).returncode == 0:
                return argv
        except FileNotFoundError:
            return None
    return None


def run_isolated(
    script: str, *arguments: object, limit_s: float = LIMIT_S, as_plain_user: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run Python text as the first process of a process namespace that ends with it; skip the test where none can be
    had."""
    choices = (AS_A_PLAIN_USER,) if as_plain_user else (NAMESPACES, OF_ONES_OWN)
    namespaces = _possible(*choices)
    if namespaces is None:
        pytest.skip(f"this machine lets nobody have a process namespace: {' '.join(choices[-1])} fails")
    return subprocess.run(
        [*namespaces, "--kill-child", sys.executable, "-P", "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TOOLS), str(Path(__file__).parent)))},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        start_new_session=True,  # a process group reaches beyond its process namespace
    )

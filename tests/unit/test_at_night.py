"""What runs for each change leaves out the tests marked `nightly`, unless their file is named, or all are wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
KILLS, SWARM, OTHER = "tests/live/test_kills.py::", "leaves_nothing[swarm]", "leaves_nothing[vxlan]"


def collected(*words: str) -> str:
    argv = [sys.executable, "-m", "pytest", "--all-tests", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(argv, cwd=PROJECT, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("words", "kills", "other"),
    [
        (("tests/live",), False, False),
        (("tests/live", "--nightly"), True, True),
        (("tests/live/test_kills.py", "tests/live/test_overlays.py"), True, True),
    ],
)
def test_a_nightly_test_runs_at_night_or_when_its_file_is_named(
    words: tuple[str, ...], kills: bool, other: bool
) -> None:
    shown = collected(*words)
    assert (KILLS in shown, SWARM in shown, OTHER in shown) == (kills, True, other)

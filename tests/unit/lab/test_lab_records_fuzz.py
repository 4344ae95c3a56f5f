"""A lab's records, broken: every verb gives an answer or one clear error, and `down` works. `--fuzz N` for more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from isolated import run_isolated

MUTANTS_PER_FUZZ = 0.02
CPU_LIMIT_S, MEMORY_LIMIT_MB = 2.0, 300.0
PROGRAM = """
import sys
from pathlib import Path
from record_mutants import main

main(int(sys.argv[1]), 7, Path(sys.argv[2]))
"""


def test_broken_records_give_an_answer_or_one_clear_error(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In a process namespace of its own, since verbs end processes by what records say."""
    wanted = request.config.getoption("--fuzz")
    rounds = wanted if wanted > 2000 else round(wanted * MUTANTS_PER_FUZZ)  # the default is the parsers'
    done = run_isolated(PROGRAM, rounds, tmp_path, limit_s=60 + 2 * rounds)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["failures"] == 0, "\n".join(report["first"])
    assert report["bystander"] is None, "a process that is no lab's was ended"
    assert report["slowest"][0] < CPU_LIMIT_S, report["slowest"]
    assert report["peak_mb"] < MEMORY_LIMIT_MB

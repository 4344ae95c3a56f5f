from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from experiment_lab import begin, chain, small
from killed_run import SAMPLE_S

from minigts.experiments.matrix import matrix
from minigts.results import manifest as manifests

HERE = Path(__file__).parents[1]
TOOLS = HERE.parents[1] / "tools"
KILLS = 6
AT_MOST = 3
"""Samples that a run takes before it may be killed."""


def start(directory: Path, *sample: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{TOOLS}:{HERE}"}
    argv = [sys.executable, str(HERE / "killed_run.py"), str(directory), *map(str, sample)]
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)


def samples(directory: Path) -> set[str]:
    return {path.name for path in (directory / "raw").glob("*.json")}


@pytest.mark.nightly
def test_a_run_killed_at_random_moments_ends_like_one_left_alone(tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    for directory in (alone, killed):
        begin(directory, small(), chain())
    planned = {f"{sample.id}.json" for sample in matrix(small(), chain())}
    assert start(alone).wait(120) == 0
    chance = random.Random(2017)
    for _ in range(KILLS):
        with start(killed, chance.randint(1, AT_MOST)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0, 2 * SAMPLE_S))
            process.kill()
        assert process.returncode == -signal.SIGKILL, "it has ended before it was killed"
        assert samples(killed) < planned
    assert samples(killed)
    assert start(killed).wait(120) == 0
    assert samples(killed) == samples(alone) == planned
    assert (killed / "samples.csv").read_text().count("\n") == len(planned) + 1
    taken = Counter(re.findall(r"INFO (\S+) in [\d.]+ s$", (killed / "run.log").read_text(), re.MULTILINE))
    assert {name for name, count in taken.items() if count > 1} == set()
    assert manifests.read(killed).ended is not None
    assert list(killed.rglob(".*")) == []

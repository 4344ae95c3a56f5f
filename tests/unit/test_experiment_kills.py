from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from experiment_lab import begin, chain, small

from minigts.experiments.matrix import matrix
from minigts.results import manifest as manifests

HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / "tools"
KILLS = 5


def start(directory: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{TOOLS}:{HERE}"}
    argv = [sys.executable, str(HERE / "killed_run.py"), str(directory)]
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def samples(directory: Path) -> set[str]:
    return {path.name for path in (directory / "raw").glob("*.json")}


def test_a_run_killed_at_random_moments_ends_like_one_left_alone(tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    for directory in (alone, killed):
        begin(directory, small(), chain())
    started = time.monotonic()
    assert start(alone).wait(60) == 0
    length_s = time.monotonic() - started
    moments = random.Random(2017)
    for _ in range(KILLS):
        process = start(killed)
        time.sleep(moments.uniform(0, 2 * length_s / KILLS))
        process.kill()
        process.wait()
    assert start(killed).wait(60) == 0
    planned = {f"{sample.id}.json" for sample in matrix(small(), chain())}
    assert samples(killed) == samples(alone) == planned
    assert (killed / "samples.csv").read_text().count("\n") == len(planned) + 1
    taken = Counter(re.findall(r"INFO (\S+) in [\d.]+ s$", (killed / "run.log").read_text(), re.MULTILINE))
    assert {name for name, count in taken.items() if count > 1} == set()
    assert manifests.read(killed).ended is not None
    assert list(killed.rglob(".*")) == []

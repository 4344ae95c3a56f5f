"""What is measured on a lab: whether one address reaches another, and experiments with the tables that they leave."""

from __future__ import annotations

import csv
from pathlib import Path

from live.program import Program
from minigts.lab import Lab
from minigts.overlays import Endpoint

PATIENCE_S = 300.0


def echoed(lab: Lab, source: Endpoint, address: str) -> bool:
    """Whether the first ping from there is answered within a second of the lab."""
    argv = [*source.network, "ping", "-c", "1", "-W", "1", "-q", address]
    return lab.provider.run(source.host, argv, timeout_s=120, check=False).code == 0


def measured(program: Program, file: Path, results: Path, *words: str) -> Path:
    """Run the experiment, with these further words; the folder of its results."""
    started = program.start("run", str(file), *words, "--results", str(results))
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    return Path(stdout.splitlines()[-1]).parent


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))

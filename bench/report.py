"""`minigts report` over a run of 100 000 samples: seconds and peak memory, for few large cells and for many small ones.

The runs' numbers are made up, by what the unit tests use; no hosts are started. The bound is 20 s and 500 MB.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench import stage
from minigts.cli import screen
from minigts.machine import shell
from minigts.results import manifest
from tests.unit import synthetic

COLUMNS = ("shape", "seconds", "processor_s", "peak_mb", "page_mb")
RATES = ["1mbit", "10mbit", "100mbit", "1gbit", "3gbit"]


@dataclass(frozen=True)
class Shape:
    """How the samples are spread: 4 overlays and 5 rates over so many paths, each so many times."""

    name: str
    paths: int
    repetitions: int


def shapes(samples: int) -> tuple[Shape, ...]:
    cells = 4 * len(RATES)
    return (Shape("few large cells", 1, samples // cells), Shape("many small cells", samples // (cells * 20), 20))


def made(shape: Shape, directory: Path) -> Path:
    """A run of that shape."""
    kind = next(each for each in synthetic.KINDS if each.name == "udp-sweep")
    paths = tuple((f"a{number}", f"b{number}", 1) for number in range(shape.paths))
    return synthetic.write(directory / shape.name.replace(" ", "-"), replace(kind, paths=paths), shape.repetitions)


def measured(run: Path) -> tuple[float, float, float]:
    """Seconds of the command, those of a processor, and the most memory in MB that a command so far has had
    (getrusage(2))."""
    since, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    shell.run([sys.executable, "-P", "-m", "minigts", "report", str(run)], timeout_s=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - since, used_s, after.ru_maxrss / 1000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--samples", type=int, default=100_000)
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR")
    given = arguments.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for shape in shapes(given.samples):
            run = made(shape, Path(scratch))
            seconds, used_s, peak_mb = measured(run)
            page_mb = (run / "report.html").stat().st_size / 1e6
            found.append((shape.name, seconds, used_s, peak_mb, page_mb))
    rows = [
        (name, f"{s:.1f} s", f"{used:.1f} s", f"{mb:.0f} MB", f"{page:.1f} MB") for name, s, used, mb, page in found
    ]
    columns = ("shape", ">takes", ">processor", ">memory", ">page")
    screen.show_table(f"report over {given.samples} samples", columns, rows)
    given.out.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": manifest.machine().model_dump(),
        "noise": manifest.noise().model_dump(),
        "runs": [dict(zip(COLUMNS, row, strict=True)) for row in found],
    }
    (given.out / "report.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    stage.perform(main)

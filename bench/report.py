"""Seconds and peak memory of `minigts report` for few large cells, for many small ones, and for a sweep.

The samples are made up by helpers of the unit tests, in files as wide as the program's own; no hosts are started. The
sweep has a folder of samples for each of its thousand labs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.machine import shell
from tests.unit import synthetic

CELLS = 20
"""The cells of each path: 4 overlays at 5 rates."""
RTTS, RATES = [f"{ms}ms" for ms in range(2, 101, 2)], [f"{mbit}mbit" for mbit in range(5, 101, 5)]
"""The settings by which the sweep's labs differ, as in `experiments/distance.yaml --paper`."""
HEADS = ("shape", ">takes", ">processor", ">memory", ">page", ">raw data")
ALONE = """
import resource, subprocess, sys, time
begun = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
"""Runs the command from a small process: the peak memory of a child includes that of its parent before exec
(getrusage(2))."""


def few_large(directory: Path, samples: int) -> Path:
    """Results with 20 cells."""
    return synthetic.write(directory / "few", of("udp-sweep", 1), samples // CELLS)


def many_small(directory: Path, samples: int) -> Path:
    """Results with cells of 20 samples."""
    return synthetic.write(directory / "many", of("udp-sweep", samples // (CELLS * 20)), 20)


def sweep(directory: Path, samples: int) -> Path:
    """Results of a thousand labs, each a run with one cell."""
    labs = list(itertools.product(RTTS, RATES))
    for rtt, rate in labs:
        swept = {"chain.link.rtt": rtt, "chain.link.rate": rate}
        kind = replace(of("overlay-host", 1), overlays=("none",), figures=(), swept=swept)
        name = ",".join(f"{place}={value}" for place, value in swept.items())
        synthetic.write(directory / "sweep" / name, kind, samples // len(labs))
    return directory / "sweep"


SHAPES: dict[str, Callable[[Path, int], Path]] = {
    "few large cells": few_large,
    "many small cells": many_small,
    "a sweep of 1000 labs": sweep,
}


def of(name: str, pairs: int) -> synthetic.Kind:
    kind = next(each for each in synthetic.KINDS if each.name == name)
    return replace(kind, paths=paths(pairs))


def paths(count: int) -> tuple[tuple[str, str, int], ...]:
    """That many pairs, of as few hosts as possible."""
    hosts = next(number for number in itertools.count(2) if number * (number - 1) >= count)
    names = [f"h{number}" for number in range(1, hosts + 1)]
    return tuple((source, target, 1) for source, target in itertools.permutations(names, 2))[:count]


def measured(results: Path) -> dict[str, float]:
    """The command's seconds and peak memory, from its start to its end."""
    command = [sys.executable, "-P", "-m", "minigts", "report", str(results)]
    said = shell.run([sys.executable, "-P", "-c", ALONE, *command], timeout_s=3600).stdout
    seconds, used_s, peak_bytes = map(float, said.split())
    return {
        "seconds": seconds,
        "processor_s": used_s,
        "peak_mb": peak_bytes / 1e6,
        "page_mb": (results / "report.html").stat().st_size / 1e6,
        "samples_mb": sum(path.stat().st_size for path in results.rglob("samples.csv")) / 1e6,
    }


def rows(found: dict[str, dict[str, float]]) -> list[Sequence[str]]:
    return [
        (
            name,
            f"{each['seconds']:.1f} s",
            f"{each['processor_s']:.1f} s",
            f"{each['peak_mb']:.0f} MB",
            f"{each['page_mb']:.1f} MB",
            f"{each['samples_mb']:.0f} MB",
        )
        for name, each in found.items()
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--samples", type=int, default=100_000)
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR")
    given = arguments.parse_args()
    figures = stage.Figures("report", Path("made up"))
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, made in SHAPES.items():
            console.note(f"{name}: making up {given.samples} samples")
            results = made(Path(scratch), given.samples)
            console.note(f"{name}: reporting")
            found[name] = measured(results)
    tables.show_table(f"report over {given.samples} samples", HEADS, rows(found))
    figures.write(given.out, {"samples": given.samples, "runs": found})


if __name__ == "__main__":
    stage.perform(main)

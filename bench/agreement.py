"""Do two runs of the same experiment on the same machine agree within the intervals that they state?

The bench compares pairs of runs of an experiment, or of a part of it. For each pair and each cell of their summaries it
reports whether the two 95 % intervals overlap, and how far the medians are apart. The intervals of two equal runs of n
samples each do not overlap with a chance of 2 / C(2n, n), since an interval lies within its samples: one time in ten
for n = 3, and one in 126 for n = 5.

The runs' folders stay in <out>/agreement: the next call continues until there are as many as wanted.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.experiments import prepare, run_folders
from minigts.experiments.matrix import matrix
from minigts.results import manifest
from minigts.session.campaign import Means, lab_for

PLACE = ("overlay", "measurement", "source", "target")
Summary = Mapping[tuple[str, ...], Mapping[str, str]]


def finished(runs: Path) -> list[Path]:
    """The folders of complete runs, oldest first."""
    folders = sorted(folder for folder in runs.glob("*") if (folder / manifest.FILE).exists())
    return [folder for folder in folders if manifest.read(folder).ended is not None]


def take(runs: Path, experiment: Path, only: list[str], repetitions: int, wanted: int) -> None:
    """Run the experiment until there are as many runs as wanted, on one lab."""
    read = prepare.prepare(experiment, paper=False, quick=False, only=only)
    longer = read.experiment.model_copy(update={"repetitions": repetitions})
    prepared = dataclasses.replace(read, experiment=longer, samples=matrix(longer, read.plan))
    with lab_for(prepared.plan, Means(), console.note) as lab:
        for number in range(wanted):
            console.note(f"run {number + 1} of {wanted}")
            directories = run_folders.begin(runs, [prepared], lab.provider.name)
            run_folders.take(directories, lab, console.note, lambda _at: None)


def summary(folder: Path) -> Summary:
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as stream:
        return {tuple(row[key] for key in PLACE): row for row in csv.DictReader(stream)}


def tainted(folder: Path) -> int:
    guard = manifest.read(folder).guard
    return 0 if guard is None else guard.tainted


def compare(first: Summary, second: Summary) -> list[dict[str, Any]]:
    """A row for each cell that both runs have."""
    rows = []
    for place in (place for place in first if place in second):
        a, b = first[place], second[place]
        apart = max(float(a["low"]), float(b["low"])) - min(float(a["high"]), float(b["high"]))
        rows.append(
            {
                "cell": ".".join(place),
                "measurement": a["measurement"],
                "n": int(a["n"]),
                "medians": [float(a["median"]), float(b["median"])],
                "relative": abs(float(a["median"]) - float(b["median"])) / float(a["median"]),
                "apart": max(0.0, apart),
                "agree": apart <= 0,
                "unit": a["unit"],
            }
        )
    return rows


def show(pairs: list[list[dict[str, Any]]]) -> None:
    rows = [row for pair in pairs for row in pair]
    cells = []
    for measurement in dict.fromkeys(row["measurement"] for row in rows):
        own = [row for row in rows if row["measurement"] == measurement]
        agree = sum(row["agree"] for row in own)
        chance = statistics.fmean(2 / math.comb(2 * row["n"], row["n"]) for row in own)
        cells.append(
            (
                measurement,
                str(len(own)),
                f"{agree} ({agree / len(own):.1%})",
                f"{1 - chance:.1%}",
                f"{statistics.median(row['relative'] for row in own):.3%}",
                f"{max(row['relative'] for row in own):.3%}",
                f"{max(row['apart'] for row in own):.3g} {own[0]['unit']}",
            )
        )
    heads = ("measurement", ">cells", ">intervals meet", ">by chance alone", ">medians apart", ">at most")
    tables.show_table(f"{len(pairs)} pairs of runs", (*heads, ">gap at most"), cells)


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--experiment", type=Path, default=stage.PROJECT / "experiments" / "multihop.yaml")
    arguments.add_argument("--only", nargs="*", default=["none", "latency", "udp"], metavar="NAME")
    arguments.add_argument("--repetitions", type=int, default=3)
    arguments.add_argument("--pairs", type=int, default=10)
    arguments.add_argument("--at-once", type=int, default=20, help="the highest number of runs in this call")
    chosen = arguments.parse_args()
    runs = chosen.out / "agreement"
    left = 2 * chosen.pairs - len(finished(runs))
    figures = stage.Figures("agreement", chosen.topology)
    if left > 0:
        take(runs, chosen.experiment, chosen.only, chosen.repetitions, min(left, chosen.at_once))
    folders = finished(runs)
    read = [summary(folder) for folder in folders]
    pairs = [compare(read[index], read[index + 1]) for index in range(0, len(read) - 1, 2)]
    console.note(f"{sum(map(tainted, folders))} tainted samples in {len(folders)} runs")
    if pairs:
        show(pairs)
        figures.write(chosen.out, {"pairs": pairs, "experiment": chosen.experiment.name, "only": chosen.only})


if __name__ == "__main__":
    stage.perform(main)

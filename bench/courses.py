"""How far is one course of events from the truth?

Reads results folders of replicates in virtual time, and starts nothing. The mean over all replicates stands for the
truth. For each claim it prints the verdict of all replicates together, those of each by itself, and the largest
distance of the claim's figures from their means in a single course. `--plain` names folders of the same experiments
without replicates, in which all clocks and programs are in step, and prints the distance of that one course.

    minigts run experiments/multihop.yaml --quick --only none --replicates 20
    bench/run courses results/multihop-20261126-100000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from bench import stage
from minigts.cli.views import tables
from minigts.errors import InputError
from minigts.experiment_language.claims import Claim
from minigts.experiments import time_limits
from minigts.experiments.claims import evaluate, speaks_of
from minigts.experiments.derive import measured_samples, summarise
from minigts.experiments.summary import Cell
from minigts.judge.statistics import estimate
from minigts.judge.verdicts import SHOWN, WORDS
from minigts.results import manifest as manifests
from minigts.results.schema import Manifest

Key = tuple[str, ...]
HEADS = ("claim", "overlay", "of all", "of single courses", ">figures", ">spread", ">furthest", "which")


def key(cell: Cell) -> Key:
    return (cell.overlay, cell.measurement, cell.metric, cell.source, cell.target, cell.condition)


def cells_of(directory: Path) -> tuple[Manifest, dict[int, dict[Key, Cell]]]:
    """The cells of each course of events; a run without replicates has the course 0."""
    manifest = manifests.read(directory)
    if manifest.plan.time == "real":
        raise InputError(f"{directory}: it is in real time, which has no courses of events")
    tried = list(measured_samples(directory, manifest))
    courses = dict.fromkeys(entry.sample.replicate for entry in tried)
    one = manifest.model_copy(update={"experiment": manifest.experiment.copy_with_replicates(1)})
    found = {
        number: summarise(one, [replace(entry, sample=replace(entry.sample, replicate=0)) for entry in own])
        for number in courses
        for own in [[entry for entry in tried if entry.sample.replicate == number]]
    }
    return manifest, {number: {key(cell): cell for cell in cells} for number, cells in found.items()}


def together(courses: Mapping[int, Mapping[Key, Cell]]) -> dict[Key, Cell]:
    """The cells of all courses; the values of each cell are the courses' medians."""
    found = {}
    for each, cell in {each: cell for own in courses.values() for each, cell in own.items()}.items():
        values = tuple(own[each].estimate.median for own in courses.values() if each in own)
        found[each] = replace(cell, values=values, every=(), basis="replicates", estimate=estimate(values))
    return found


def verdicts(claim: Claim, cells: Sequence[Cell], manifest: Manifest) -> dict[str, str]:
    """The verdicts by overlay and measurement, without vacuous ones."""
    found = evaluate([claim], cells, manifest.plan)
    return {f"{each.overlay} {each.detail.split(':')[0]}": each.verdict for each in found}


def away(cell: Cell, mean: float) -> float:
    return abs(cell.estimate.median - mean) / abs(mean) if mean else abs(cell.estimate.median)


def rows(directory: Path, plain: Mapping[str, Path]) -> list[tuple[str, ...]]:
    manifest, courses = cells_of(directory)
    every = together(courses)
    in_step = cells_of(plain[manifest.experiment.name])[1].get(0, {}) if manifest.experiment.name in plain else {}
    told = []
    for claim in time_limits.claims(manifest):
        of_all = verdicts(claim, list(every.values()), manifest)
        vacuous = {
            f"{each.overlay} {each.detail.split(':')[0]}": each.verdict
            for each in evaluate([claim], list(every.values()), manifest.plan, manifest.experiment)
        }
        single = [verdicts(claim, list(own.values()), manifest) for own in courses.values()]
        for where, word in of_all.items():
            overlay, _, measurement = where.partition(" ")
            own = [cell for cell in every.values() if speaks_of(claim, cell) and cell.overlay == overlay]
            own = [cell for cell in own if cell.measurement == measurement]
            counts = Counter(each.get(where, "undecided") for each in single)
            means = {key(cell): fmean(cell.values) for cell in own}
            worst = max(
                (
                    (away(course[each], mean), each, number)
                    for number, course in courses.items()
                    for each, mean in means.items()
                    if each in course
                ),
                default=(0.0, (), 0),
            )
            spread = max((stdev(cell.values) / abs(means[key(cell)]) for cell in own if means[key(cell)]), default=0.0)
            shown = SHOWN[word] + (f" ({SHOWN['vacuous']})" if vacuous.get(where) == "vacuous" else "")
            path = f"{worst[1][3]} to {worst[1][4]}" if worst[1] else ""
            stepped = [away(in_step[each], mean) for each, mean in means.items() if each in in_step]
            path += f"; in step {100 * max(stepped):.2g} %" if stepped and path else ""
            told.append(
                (
                    claim.words,
                    overlay,
                    shown,
                    ", ".join(f"{counts[word]} {SHOWN[word]}" for word in WORDS if counts[word]),
                    str(len(own)),
                    f"{100 * spread:.2g} %",
                    f"{100 * worst[0]:.2g} %",
                    path,
                )
            )
    return told


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    arguments.add_argument("--plain", nargs="*", type=Path, default=[], metavar="DIR")
    chosen = arguments.parse_args()
    plain = {manifests.read(each).experiment.name: each for each in chosen.plain}
    for folder in chosen.folders:
        manifest = manifests.read(folder)
        number = manifest.experiment.replicates
        tables.show_table(f"{manifest.experiment.name}, {number} replicates", HEADS, rows(folder, plain))


if __name__ == "__main__":
    stage.perform(main)

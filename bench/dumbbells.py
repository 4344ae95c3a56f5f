"""TCP through a drop-tail queue under several clocks and kernels: goodput, the queue, and congestion windows laid over
each other. Reads results of the experiment beside-ns3; the first folder's figures are those to which others are
compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import ns3, stage
from minigts.cli.views import tables
from minigts.errors import InputError
from minigts.report import style
from minigts.report.read import ReportResults
from minigts.report.render import write

COLOURS = (style.INK, *(colour for colour, *_ in style.OTHERS[:3]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "folders",
        nargs="+",
        metavar="NAME=RESULTS",
        help="what the table and the figure call it, and the results folder of beside-ns3; two to four",
    )
    arguments.add_argument("--figure", type=Path, metavar="FILE", help="where the figure of the windows goes, an SVG")
    given = arguments.parse_args()
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in given.folders)}
    if not 2 <= len(folders) <= len(COLOURS):
        raise InputError(f"bench/run dumbbells compares two to {len(COLOURS)} results folders, each NAME=RESULTS")
    found = {name: ns3.of_the_experiment(folder) for name, folder in folders.items()}
    columns = [f">{what} {name}" for name in found for what in ("Mbit/s", "queue ms")]
    tables.show_table("One dumbbell", ("flows, queue", *columns), list(rows(found)))
    if given.figure:
        lines = [
            (name, colour, ns3.windows_of(results))
            for (name, results), colour in zip(found.items(), COLOURS, strict=False)
        ]
        write(given.figure, ns3.windows_drawn(given.figure.stem, lines))


def rows(found: Mapping[str, ReportResults]) -> Sequence[tuple[str, ...]]:
    """A row for each measurement and queue: the figures of each lab, and of all but the first their ratio to its."""
    made = []
    for name in ns3.CONTROLS:
        for to in ns3.QUEUES:
            figures = [ns3.of_the_lab(results, name, to) for results in found.values()]
            cells = [f"{figure:.4g}" for figure in figures[0]]
            for own in figures[1:]:
                cells += [
                    f"{figure:.4g} ({100 * figure / first:.0f} %)"
                    for figure, first in zip(own, figures[0], strict=True)
                ]
            made.append((f"{name}, {to}", *cells))
    return made


if __name__ == "__main__":
    stage.perform(main)

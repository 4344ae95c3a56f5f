"""TCP through a drop-tail queue in ns-3 and in a lab: goodput, the queue, the congestion windows laid over each other.

ns-3 is an independent simulator with a TCP of its own. It is not part of minigts: on Debian 12, best in a container,
`apt-get install g++ pkg-config libns3-dev libgsl-dev` brings it. The lab's side is `minigts validate beside-ns3`.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks, InputError
from minigts.report import style
from minigts.report.read import ReportResults, read
from minigts.report.render import write

PROGRAM = stage.PROJECT / "bench" / "ns3.cc"
LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
CONTROLS = {"reno": "LinuxReno", "cubic": "Cubic", "two-reno": "LinuxReno,LinuxReno", "two-cubic": "Cubic,Cubic"}
"""ns-3's congestion controls of each measurement of the experiment."""
QUEUES = {"half": 25_000, "one": 50_000}
"""The queue in bytes before each receiver of topologies/queue-lengths.yaml."""
OMIT_S, SECONDS, SECOND_STARTS_S = 20, 40, 1
DRAWN, SHOWN_S = ("reno", "cubic"), 12
"""The measurements whose windows are drawn, and for how many seconds after the beginning."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Simulated:
    """ns-3's figures of one measurement and queue; `windows` are each flow's, in bytes, every `every_s` seconds."""

    mbit: float
    queue_ms: float
    every_s: float
    windows: Sequence[Sequence[float]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "results", type=Path, metavar="RESULTS", help="the results folder of the experiment beside-ns3"
    )
    arguments.add_argument("--figure", type=Path, metavar="FILE", help="where the figure of the windows goes, an SVG")
    given = arguments.parse_args()
    results = of_the_experiment(given.results)
    simulated: dict[tuple[str, str], Simulated] = {}
    with tempfile.TemporaryDirectory(prefix="minigts-ns3-") as scratch:
        program = compiled(Path(scratch))
        for name, controls in CONTROLS.items():
            for to, queue_bytes in QUEUES.items():
                console.note(f"ns-3: {name}, queue of {queue_bytes} bytes")
                simulated[name, to] = ran(program, controls, queue_bytes)
    rows = []
    for (name, to), there in simulated.items():
        mbit, queue_ms = of_the_lab(results, name, to)
        figures = (there.mbit, mbit, 100 * mbit / there.mbit, there.queue_ms, queue_ms, 100 * queue_ms / there.queue_ms)
        rows.append((f"{name}, {to}", *(f"{figure:.4g}" for figure in figures)))
    columns = (">Mbit/s in ns-3", ">here", ">%", ">queue in ns-3, ms", ">here", ">%")
    tables.show_table("TCP beside ns-3", ("flows, queue", *columns), rows)
    if given.figure:
        write(given.figure, drawn(results, simulated))


def of_the_experiment(folder: Path) -> ReportResults:
    """The results in a folder of the experiment beside-ns3. Raises InputError for others."""
    results = read(folder)
    if results.name != "beside-ns3":
        raise InputError(f"{folder}: holds {results.name}, and not beside-ns3")
    return results


def compiled(scratch: Path) -> Path:
    """The program for ns-3. Raises EnvironmentLacks without ns-3 or a compiler."""
    words = [f"ns3-{library}" for library in LIBRARIES]
    lacking = [name for name in ("g++", "pkg-config") if shutil.which(name) is None]
    asked = ["pkg-config", "--cflags", "--libs", *words]
    found = None if lacking else subprocess.run(asked, check=False, capture_output=True, text=True)
    if found is None or found.returncode != 0:
        packages = "apt-get install g++ pkg-config libns3-dev libgsl-dev, best in a container of its own"
        raise EnvironmentLacks(f"ns-3 or a compiler is not installed here; on Debian 12: {packages}")
    program = scratch / "dumbbell"
    argv = ["g++", "-std=c++17", "-O1", str(PROGRAM), "-o", str(program), *found.stdout.split()]
    subprocess.run(argv, check=True)
    return program


def ran(program: Path, controls: str, queue_bytes: int) -> Simulated:
    first_s = OMIT_S + SECOND_STARTS_S * controls.count(",")
    argv = [str(program), f"--algorithms={controls}", f"--starts=0,{SECOND_STARTS_S}", f"--queue={queue_bytes}"]
    argv += [f"--omit={first_s}", f"--seconds={SECONDS}"]
    told: dict[str, Any] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    windows = [flow["cwnd_bytes"] for flow in told["flows"]]
    return Simulated(sum(flow["mbit"] for flow in told["flows"]), told["queue_ms"], told["every_s"], windows)


def of_the_lab(results: ReportResults, name: str, to: str) -> tuple[float, float]:
    """Goodput in Mbit/s and queueing delay in ms, medians over the samples."""
    with (results.directory / "samples.csv").open(newline="") as file:
        own = [row for row in csv.DictReader(file) if (row["measurement"], row["target"]) == (name, to)]
    if not own:
        raise InputError(f"{results.directory}: has no samples of {name} to {to}")
    middle = len(own) // 2
    return sorted(float(row["value"]) for row in own)[middle], sorted(float(row["queueing_ms"]) for row in own)[middle]


def drawn(results: ReportResults, simulated: dict[tuple[str, str], Simulated]) -> str:
    """The congestion windows of one flow over time, a panel for each congestion control and queue."""

    def there(name: str, to: str) -> Points:
        found = simulated[name, to]
        return [(found.every_s * (number + 1), each) for number, each in enumerate(found.windows[0])]

    return windows_drawn("ns3-windows", (("ns-3", style.FAINT, there), ("here", style.INK, windows_of(results))))


def windows_of(results: ReportResults) -> Callable[[str, str], Points]:
    """The windows of the measurement's first flow to a host: moments in s, and bytes."""

    def of(name: str, to: str) -> Points:
        rows = (row for row in results.series if (row.measurement, row.target) == (name, to))
        return [(row.at_s, row.value) for row in rows if row.column == "flow cwnd_bytes"]

    return of


def windows_drawn(title: str, lines: Sequence[tuple[str, str, Callable[[str, str], Points]]]) -> str:
    """Congestion windows over time as an SVG: each line has its label, its colour, and its points by measurement and
    receiver."""
    with style.sheet(4.4) as figure:
        panels = figure.subplots(len(DRAWN), len(QUEUES), sharex=True, sharey="col")
        for across, name in zip(panels, DRAWN, strict=True):
            for axes, to in zip(across, QUEUES, strict=True):
                for label, colour, points in lines:
                    at = points(name, to)
                    axes.plot([s for s, _ in at], [value / 1000 for _, value in at], color=colour, label=label)
                axes.set_title(f"{name}, queue of {QUEUES[to] // 1000} kB")
                axes.grid()
                axes.set_xlim(OMIT_S, OMIT_S + SHOWN_S)
        for axes in panels[-1]:
            axes.set_xlabel("s")
        for axes in panels[:, 0]:
            axes.set_ylabel("window in kB")
        style.legend(figure, [panels[0][0]], [label for label, _, _ in lines])
    return style.svg(figure, title)


if __name__ == "__main__":
    stage.perform(main)

"""A campaign of many virtual labs: how much faster several workers are, whether they give the same bytes, and what
would limit ten thousand labs on a thousand workers.

`labs` runs experiments/distance.yaml with the wanted number of distances, once for each number of workers. `parts`
measures what each job costs the one process that hands out jobs and collects their results. `simulate` computes with
these figures and with the durations of labs: it runs no workers, so its result is a model, not a measurement.
"""

from __future__ import annotations

import heapq
import itertools
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.cluster import merge_results
from minigts.cluster.engine import open_engine
from minigts.cluster.jobs import Job, split
from minigts.experiments import run
from minigts.machine import shell
from minigts.report import render
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.bundle import tables as tables_of

PARTS = ("labs", "parts", "simulate")
LIMIT_S = 24 * 3600.0
LINE_MB_S = 125.0
"""Gigabit Ethernet, over which the parts of labs are sent to machines."""
TOGETHER = 16
"""Workers on one machine, which share the parts that are sent to it."""


def distances(place: Path, labs: int) -> Path:
    """The experiment that minigts brings, at one rate, with that many round-trip times from 2 to 102 ms. Longer ones
    make a lab take longer."""
    step_us = 100_000 // labs
    last_us = 2000 + step_us * (labs - 1)
    text = (stage.PROJECT / "experiments" / "distance.yaml").read_text()
    swept = f"vary:\n  pair.link.rtt: [2000us to {last_us}us by {step_us}us]\n  pair.link.rate: [50mbit]\n"
    file = place / "distance.yaml"
    file.write_text(re.sub(r"^vary:\n(?:  .*\n)+", swept, text, flags=re.MULTILINE))
    return file


def labs(count: int, workers: Sequence[int], place: Path) -> Iterator[dict[str, Any]]:
    first: dict[str, bytes] = {}
    for number in workers:
        results = place / str(number)
        on = ("--on", f"local:{number}") if number else ()
        argv = [
            sys.executable,
            "-P",
            "-m",
            "minigts",
            "run",
            str(distances(place, count)),
            "--results",
            str(results),
            *on,
        ]
        console.note(f"{count} labs, {number or 'no'} workers")
        started = time.monotonic()
        shell.run(argv, timeout_s=LIMIT_S)
        (top,) = results.iterdir()
        found = tables_of(top)
        first = first or found
        yield {"workers": number, "labs": count, "seconds": time.monotonic() - started, "equal": found == first}


def parts(top: Path) -> dict[str, float]:
    """Seconds of the campaign's central process for each job: handed out and answered, stored, evaluated, drawn."""
    directories = store.runs_in(top)
    jobs = [*_whole(top, directories)]
    texts = [job.model_dump_json() for job in jobs]
    with open_engine("local:1", console.note) as engine:
        engine.client.gather(engine.client.map(len, texts[:1], pure=False))
        started = time.monotonic()
        engine.client.gather(engine.client.map(str.encode, texts, pure=False))
        handed_s = (time.monotonic() - started) / len(jobs)
    kept, derived = [], []
    for job, directory in zip(jobs, directories, strict=True):
        files = {path.relative_to(directory).as_posix(): path.read_text() for path in _files(directory)}
        started = time.monotonic()
        merge_results.keep(top, job, files)
        kept.append(time.monotonic() - started)
        started = time.monotonic()
        run.finish(directory)
        derived.append(time.monotonic() - started)
    started = time.monotonic()
    render(top)
    drawn_s = (time.monotonic() - started) / len(jobs)
    return {
        "handed_s": handed_s,
        "kept_s": statistics.median(kept),
        "derived_s": statistics.median(derived),
        "drawn_s": drawn_s,
    }


def _whole(top: Path, directories: Sequence[Path]) -> Iterator[Job]:
    """The jobs of runs, all of them as yet to be done."""
    with tempfile.TemporaryDirectory() as place:
        for directory in directories:
            empty = Path(place) / directory.name
            empty.mkdir()
            manifests.write(empty, manifests.read(directory).model_copy(update={"certificate": {}}))
        yield from split(Path(place), [Path(place) / each.name for each in directories])


def _files(directory: Path) -> Iterator[Path]:
    yield from (directory / "raw").glob("*.json")
    yield from (directory / name for name in ("manifest.json", "certificate.json", "run.log"))


def simulate(
    count: int, workers: int, lab_s: Sequence[float], part: dict[str, float], shipped_mb: float
) -> dict[str, Any]:
    """Jobs that workers do in parallel, and one process that hands out, stores and sends, one thing at a time."""
    machines = -(-workers // TOGETHER)
    free_s = ships_s = machines * shipped_mb / LINE_MB_S
    lasting = itertools.cycle(lab_s)
    serial_s = part["handed_s"] + part["kept_s"]
    doing = [free_s * number / workers + next(lasting) for number in range(min(workers, count))]
    heapq.heapify(doing)
    begun = len(doing)
    while doing:
        free_s = max(heapq.heappop(doing), free_s) + serial_s
        if begun < count:
            heapq.heappush(doing, free_s + next(lasting))
            begun += 1
    whole_s = free_s + count * (part["derived_s"] + part["drawn_s"])
    labs_s = sum(itertools.islice(itertools.cycle(lab_s), count))
    return {
        "workers": workers,
        "labs": count,
        "seconds": whole_s,
        "speed_up": labs_s / whole_s,
        "busy_percent": 100 * labs_s / workers / whole_s,
        "shipping_s": ships_s,
        "keeping_s": count * serial_s,
        "deriving_s": count * (part["derived_s"] + part["drawn_s"]),
    }


def main() -> None:
    arguments = stage.parser(__doc__, "distance.yaml")
    arguments.add_argument("part", choices=PARTS)
    arguments.add_argument("--labs", type=int, default=24, help="the number of labs")
    arguments.add_argument(
        "--workers", type=int, nargs="+", default=[0, 1, 2], metavar="N", help="the numbers of workers; 0: without --on"
    )
    arguments.add_argument(
        "--results", type=Path, metavar="DIR", help="parts: the folder of a complete sweep; it is written again"
    )
    arguments.add_argument(
        "--lab-seconds",
        type=float,
        nargs="+",
        default=[4.0],
        metavar="S",
        help="simulate: durations of labs, used in turn",
    )
    arguments.add_argument(
        "--shipped-mb", type=float, default=500.0, help="simulate: the size of what each machine is sent"
    )
    chosen = arguments.parse_args()
    figures = stage.Figures(f"campaign-{chosen.part}", chosen.topology)
    if chosen.part == "labs":
        with tempfile.TemporaryDirectory(prefix="minigts-bench-") as place:
            rows = [*labs(chosen.labs, chosen.workers, Path(place))]
        shown = [
            (
                f"{row['workers'] or 'none'}",
                f"{row['seconds']:.0f} s",
                f"{rows[0]['seconds'] / row['seconds']:.2f}",
                console.yes(row["equal"]),
            )
            for row in rows
        ]
        tables.show_table(f"{chosen.labs} labs", ("workers", ">took", ">speed-up", "same bytes"), shown)
        figures.write(chosen.out, {"rows": rows})
    elif chosen.part == "parts":
        if chosen.results is None:
            arguments.error("parts: --results DIR: a sweep that has been run")
        found = parts(chosen.results)
        tables.show_table(
            "a job's, of the campaign's process", ("part", ">ms"), [(k, f"{1000 * v:.1f}") for k, v in found.items()]
        )
        figures.write(chosen.out, found)
    else:
        part = json.loads((chosen.out / "campaign-parts.json").read_text())
        rows = [simulate(chosen.labs, n, chosen.lab_seconds, part, chosen.shipped_mb) for n in chosen.workers]
        columns = ("workers", ">took", ">speed-up", ">workers busy", ">shipping", ">keeping", ">deriving and drawing")
        shown = [
            (
                f"{row['workers']}",
                f"{row['seconds']:.0f} s",
                f"{row['speed_up']:.0f}",
                f"{row['busy_percent']:.0f} %",
                f"{row['shipping_s']:.0f} s",
                f"{row['keeping_s']:.0f} s",
                f"{row['deriving_s']:.0f} s",
            )
            for row in rows
        ]
        tables.show_table(f"{chosen.labs} labs, simulated", columns, shown)
        figures.write(chosen.out, {"rows": rows})


if __name__ == "__main__":
    stage.perform(main)

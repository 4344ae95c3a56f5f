"""The cost of work in a lab's hosts: a command, a copy in and out, an image loaded into the engines of all of them.

A command by `minigts.api` needs only the lab; by the verb the program has to start, too. Every file has new random
bytes, so that nothing is found in a cache and nothing can be compressed.
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import stage
from minigts import api, overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.lab import Lab
from minigts.machine import shell
from minigts.topology.read.load import load
from minigts.topology.time import Time

MEGABYTE = 1_000_000
LIMIT_S = 600.0


class Trials:
    """The trials on one lab. Each method does its work once; files are made before the clock starts."""

    def __init__(self, lab: Lab, place: Path, megabytes: int, image_megabytes: int) -> None:
        self._lab, self._place = lab, place
        self._host = lab.plan.hosts[0].name
        self._api = api.open_lab(lab.name).host(self._host)
        self._file = place / "bytes"
        self._file.write_bytes(os.urandom(megabytes * MEGABYTE))
        self._image_bytes = image_megabytes * MEGABYTE
        self._images = self._new_images()

    def by_api(self) -> float:
        return timed(lambda: self._api.run("true"))

    def by_verb(self) -> float:
        return timed(lambda: self._verb("exec", self._host, "--", "true"))

    def copy_in(self) -> float:
        return timed(lambda: self._verb("cp", str(self._file), f"{self._host}:/var/tmp/bytes"))

    def copy_out(self) -> float:
        return timed(lambda: self._verb("cp", f"{self._host}:/var/tmp/bytes", str(self._place / "back")))

    def image(self) -> float:
        made = next(self._images)
        try:
            return timed(lambda: self._verb("load", str(made)))
        finally:
            made.unlink()

    def _verb(self, verb: str, *arguments: str) -> None:
        shell.run([sys.executable, "-P", "-m", "minigts", verb, "--lab", self._lab.name, *arguments], timeout_s=LIMIT_S)

    def _new_images(self) -> Iterator[Path]:
        """New root file systems of one file each."""
        for number in range(sys.maxsize):
            made = self._place / f"bench-{os.getpid()}-{number}.tar"
            entry = tarfile.TarInfo("usr/bytes")
            entry.size = self._image_bytes
            with tarfile.open(made, "w") as archive:
                archive.addfile(entry, io.BytesIO(os.urandom(self._image_bytes)))
            yield made


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def row(what: str, once: Callable[[], float], count: int) -> dict[str, Any]:
    console.note(f"{what}, {count} times")
    seconds = sorted(once() for _ in range(count))
    return {"what": what, "seconds": [round(each, 5) for each in seconds]}


@contextmanager
def lab_at(topology: Path, time_: Time) -> Iterator[Lab]:
    with stage.lab_of(load(topology, known_overlays=overlays.known_names(), time=time_)) as lab:
        yield lab


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--overlay", default="swarm", help="the overlay whose engines load the image")
    arguments.add_argument("--time", choices=("real", "virtual"), default="virtual", help="the kind of the lab's time")
    arguments.add_argument(
        "--times", type=int, default=7, help="the number of trials of a verb; ten times as many of a command by API"
    )
    arguments.add_argument("--megabytes", type=int, default=100, help="the size of the file that is copied")
    arguments.add_argument("--image-megabytes", type=int, default=200, help="the size of the image that all hosts load")
    chosen = arguments.parse_args()
    figures = stage.Figures("work", chosen.topology)
    with lab_at(chosen.topology, chosen.time) as lab, tempfile.TemporaryDirectory(prefix="minigts-bench-") as place:
        overlays.join(lab, chosen.overlay, console.note)
        trials = Trials(lab, Path(place), chosen.megabytes, chosen.image_megabytes)
        hosts = len(lab.plan.hosts)
        rows = [
            row("a command, by minigts.api", trials.by_api, 10 * chosen.times),
            row("a command, by minigts exec", trials.by_verb, chosen.times),
            row(f"cp of {chosen.megabytes} MB to a host", trials.copy_in, chosen.times),
            row(f"cp of {chosen.megabytes} MB from a host", trials.copy_out, chosen.times),
            row(f"load of an image of {chosen.image_megabytes} MB on {hosts} hosts", trials.image, chosen.times),
        ]
    cells = (
        (each["what"], *(f"{value:.3f}" for value in (seconds[0], statistics.median(seconds), seconds[-1])))
        for each in rows
        for seconds in [each["seconds"]]
    )
    tables.show_table(f"Seconds, in {chosen.time} time", ("what", ">least", ">median", ">most"), cells)
    figures.write(chosen.out, {"time": chosen.time, "rows": rows})


if __name__ == "__main__":
    stage.perform(main)

"""What all benches share: a lab of their own, and a file for the figures. A bench measures and asserts nothing."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minigts import overlays, paths
from minigts.cli import console
from minigts.lab import Lab
from minigts.results import manifest
from minigts.session.bring_up import bare
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

PROJECT = paths.project_root()
RESULTS = Path("results") / "bench"


def parser(about: str | None, topology: str) -> argparse.ArgumentParser:
    """A parser of the arguments that all benches have; `topology` is a file's name in topologies/."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--topology", type=Path, default=PROJECT / "topologies" / topology, metavar="FILE")
    made.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="the directory for the figures, as JSON")
    return made


def plan_of(topology: Path) -> Plan:
    return load(topology, known_overlays=overlays.known_names())


@contextmanager
def lab_of(plan: Plan, provider: str = "uml") -> Iterator[Lab]:
    """Yield a lab for this bench alone, without overlay; it is taken down at the end."""
    with bare(plan, provider, f"bench-{os.getpid()}", console.note) as made:
        yield made


def perform(bench: Callable[[], None]) -> None:
    """Run a bench. An error that minigts can explain ends it with a message instead of a traceback.

    A SIGTERM, such as timeout(1) sends, unwinds it, too: its lab is taken down.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        bench()
    except (Exception, KeyboardInterrupt) as error:
        if not console.is_expected(error):
            raise
        raise SystemExit(console.explain(error, debug=False)) from error


class Figures:
    """The figures of a bench, with the machine and its load."""

    def __init__(self, bench: str, topology: Path) -> None:
        self._head = {
            "bench": bench,
            "topology": topology.name,
            "started": manifest.now(),
            "machine": manifest.machine().model_dump(),
            "noise_before": manifest.noise().model_dump(),
        }
        self._bench = bench

    def write(self, directory: Path, found: dict[str, Any]) -> None:
        """Write `<directory>/<bench>.json`, in place of an earlier one, and print its path."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self._bench}.json"
        document = {**self._head, "noise_after": manifest.noise().model_dump(), **found}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        busy = document["noise_before"]["load_1min"]
        console.note(f"load of the machine {busy:g} before, {document['noise_after']['load_1min']:g} after; {path}")

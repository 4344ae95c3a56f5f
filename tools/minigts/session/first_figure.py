"""A first figure while the kernel of labs in virtual time is compiled: a piece of the experiment in real time, for
which the hosts' image, with Debian's kernel in it, is enough."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from minigts.errors import InputError
from minigts.experiments import prepare, run
from minigts.experiments.prepare import Prepared
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import Exports, Prepares
from minigts.topology.time import Time

LONGEST_S = 30.0
"""The longest that its measurements may take, in seconds; the first measurement is taken whatever it takes."""
FOLDER = "first-figure"
"""Its folder among the results."""
SAID_EVERY_S = 5.0
"""How many seconds pass at least between two lines of its progress."""
PATIENCE_S = 60.0
"""How long a run that is interrupted may take to take its lab down, in seconds."""
REAL: Time = "real"


@dataclass(frozen=True)
class Piece:
    """What the first figure is of: one overlay of an experiment, and some of its measurements, once each."""

    file: Path
    provider: str
    overlay: str
    measurements: tuple[str, ...]
    seconds: float
    """How long measuring takes, in seconds."""


def piece(files: Sequence[Path], prepared: Sequence[Prepared], provider: str, only: Collection[str]) -> Piece | None:
    """The piece for these experiments, read from these files. None where everything is built, where nothing is
    measured in virtual time, for several labs, and for an experiment that says nothing in real time."""
    if len(files) != 1 or len(prepared) != 1 or not prepared[0].samples or prepared[0].time == REAL:
        return None
    made = registry.make(provider, Path(), prepared[0].time)
    if not (isinstance(made, Exports) and isinstance(made, Prepares)) or made.is_built():
        return None
    with suppress(InputError):
        return _piece(files[0], provider, [*only])
    return None


def _piece(file: Path, provider: str, only: Sequence[str]) -> Piece | None:
    found = prepare.prepare(file, paper=False, quick=True, only=only, time=REAL, provider=provider)
    overlay = found.experiment.overlays[0]
    samples = [each for each in found.samples if each.overlay == overlay]
    chosen, total_s = list[str](), 0.0
    for each in found.experiment.measurements:
        own = [sample for sample in samples if sample.measurement == each.name]
        seconds = run.total_s(found.experiment, found.plan, own)
        if own and (not chosen or total_s + seconds <= LONGEST_S):
            chosen.append(each.name)
            total_s += seconds
    return Piece(file, provider, overlay, tuple(chosen), total_s) if chosen else None


def measure(wanted: Piece, results: Path, say: Progress) -> Path | None:
    """Measure the piece in a process of its own, beside the compilers; return its results folder. None, and a line that
    says why, where it has failed: what comes later is not affected. An interruption takes its lab down."""
    folder = results / FOLDER
    before = set(_runs(folder))
    names = " and ".join(wanted.measurements)
    say(f"the hosts' image is there: a first figure meanwhile, in real time: {names} over {wanted.overlay}")
    only = [word for name in (wanted.overlay, *wanted.measurements) for word in ("--only", name)]
    words = ["run", str(wanted.file), "--quick", "--time", REAL, "--provider", wanted.provider]
    code = _follow([*words, *only, "--results", str(folder)], say)
    new = [each for each in _runs(folder) if each not in before]
    if code != 0 or not new:
        say(f"the first figure failed (minigts {words[0]} ended with {code}); the build goes on")
        return None
    return new[-1]


def _runs(folder: Path) -> list[Path]:
    return sorted(each for each in folder.glob("*") if each.is_dir()) if folder.is_dir() else []


def _follow(words: Sequence[str], say: Progress) -> int:
    """The exit code of a minigts of its own; what it is doing is said now and then."""
    argv = [sys.executable, "-P", "-m", "minigts", *words]
    process = shell.start(argv, output=subprocess.DEVNULL, errors=subprocess.PIPE)
    assert process.stderr is not None
    try:
        _say_lines(process.stderr, say)
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            if process.poll() is None:
                process.kill()
                process.wait()
        process.stderr.close()


def _say_lines(lines: IO[bytes], say: Progress) -> None:
    said_s = 0.0
    for line in lines:
        if (text := line.decode(errors="replace").strip()) and time.monotonic() - said_s > SAID_EVERY_S:
            said_s = time.monotonic()
            say(f"  first figure: {text}")

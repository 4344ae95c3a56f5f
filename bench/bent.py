"""A fault that is put in on purpose, and the laws of `minigts validate` that do not hold with it.

Not here: the faults themselves (`physics.py`, `constants.py`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import InputError
from minigts.report import laws

LIMIT_S = 3600
FIGURE = re.compile(r"\([^()]* to [^()]*\) (.+), where (.+) was expected")
"""In a claim's outcome the figure, after where it was measured, and its range."""


@dataclass(frozen=True)
class Fault:
    """A place in a file, which it has once, and what stands there instead; `of` is the cheapest of the experiments
    whose laws it bends, as far as is known beforehand."""

    name: str
    file: str
    place: str
    instead: str
    of: tuple[str, ...]


@dataclass(frozen=True)
class Failed:
    """A law that did not hold, and of its figures the one that uses most of its range."""

    law: str
    figure: str
    """`2.24 ms, 101.1 % of 2.21 ms by the formula`."""
    range: str
    """`99.95 to 100.1 %`."""


@dataclass(frozen=True)
class Trial:
    """What the laws said of a fault. `failed` has the laws that failed with it and hold without."""

    fault: str
    failed: tuple[Failed, ...]
    seconds: float
    refused: str = ""
    """What minigts said where nothing was measured; then nothing was noticed."""

    @property
    def noticed(self) -> str:
        """By which laws it was noticed, in words."""
        if not self.failed and self.refused:
            return f"no law: minigts did not measure, {self.refused}"
        return ", ".join(each.law for each in self.failed) or "NOT NOTICED"

    @property
    def row(self) -> str:
        """A row of docs/evidence/faults.md: fault, laws, and the first one's figure and range."""
        one = self.failed[0] if self.failed else Failed("", "", "")
        return f"| {self.fault} | {self.noticed} | {one.figure} | {one.range} |"


def with_fault(fault: Fault, text: str) -> str:
    """The file's text with the fault. Raises ValueError unless its place is there once."""
    if text.count(fault.place) != 1:
        raise ValueError(f"{fault.file} has {text.count(fault.place)} places for: {fault.name}")
    return text.replace(fault.place, fault.instead)


def failing(
    checkout: Path, names: Sequence[str], results: Path, *, options: Sequence[str] = ()
) -> tuple[tuple[Failed, ...] | None, str]:
    """The laws that did not hold by `minigts validate` of a checkout, the furthest from its range first; None and what
    it said, where it made no results."""
    results.mkdir()
    argv = [str(checkout / "minigts"), "validate", *names, *options, "--results", str(results)]
    environment = {name: value for name, value in os.environ.items() if name not in ("MINIGTS_MODULE", "PYTHONPATH")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if done.returncode not in (0, 1):
        return None, said
    found = failed_in(results)
    return found, "" if found is not None else said


def failed_in(results: Path) -> tuple[Failed, ...] | None:
    """The laws that did not hold in a directory of results, the furthest from its range first; None where no sample has
    a result."""
    folders = [each for each in sorted(results.iterdir()) if each.is_dir()]
    try:
        found = [law for each in folders for group in laws.groups(each) for law in group.laws if law.verdict != "held"]
    except InputError:
        return None
    return tuple(failed(law) for law in sorted(found, key=lambda law: -(law.used or 0))) if folders else None


def failed(law: laws.Law) -> Failed:
    """A law that did not hold, with its furthest figure."""
    outcomes = [each for held in law.claims for each in held.outcomes if each.verdict != "held"]
    furthest = max(outcomes, key=lambda each: each.used or 0)
    said = FIGURE.search(furthest.detail)
    return Failed(law.name, *said.groups()) if said else Failed(law.name, furthest.detail, "")


def report(trials: Iterable[Trial], name: str, title: str, out: Path) -> NoReturn:
    """Write what was tried into `out` after each trial, as NAME.json and as rows of a page, and print a table at the
    end. Ends with 1 where a fault was not noticed."""
    out.mkdir(parents=True, exist_ok=True)
    found: list[Trial] = []
    for trial in trials:
        console.note(f"{trial.fault}: {trial.noticed}")
        found.append(trial)
        (out / f"{name}.json").write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
        (out / f"{name}.md").write_text("".join(f"{each.row}\n" for each in found))
    tables.show_table(title, ("fault", "noticed by"), [(each.fault, each.noticed) for each in found])
    raise SystemExit(any(not each.failed for each in found))


def chosen(faults: Sequence[Fault], numbers: Sequence[int]) -> Sequence[Fault]:
    """The faults of these numbers, from 1 on; all without any. Raises ValueError for a number that none has."""
    if wrong := [number for number in numbers if not 1 <= number <= len(faults)]:
        raise ValueError(f"no fault {wrong[0]}; there are 1 to {len(faults)}")
    return [faults[number - 1] for number in numbers] or faults

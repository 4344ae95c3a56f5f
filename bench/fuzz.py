"""Great numbers of broken files for every reader: each is accepted, or refused with a message, in 2 s and 300 MB.

The unit tests try a few mutants of each subject in every run. `--only N` prints one mutant and its result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables

sys.path.insert(0, str(stage.PROJECT / "tests"))

import fuzzed_languages
from fuzzing import Outcome, fuzz, mutant

SUBJECTS = {subject.name: subject for subject in fuzzed_languages.subjects()}
COLUMNS = ("subject", ">mutants", ">accepted", ">failed", ">slowest", ">largest")
SAVED_EVERY_S = 30.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all by default")
    arguments.add_argument("--mutants", type=int, default=100_000, help="the number of mutants of each subject")
    arguments.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first mutant")
    arguments.add_argument("--only", type=int, metavar="N", help="only this mutant, which is printed")
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    if unknown := set(given.subjects) - set(SUBJECTS):
        arguments.error(f"no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    outcomes = []
    for name in given.subjects or SUBJECTS:
        if given.only is not None:
            sys.stdout.buffer.write(mutant(SUBJECTS[name], given.only))
            sys.stdout.flush()
        first, last = (
            (given.only, given.only + 1) if given.only is not None else (given.first, given.first + given.mutants)
        )
        outcomes.append(_fuzzed(name, first, last, given.out))
        for failure in outcomes[-1].failures:
            console.note(f"{name}, number {failure.number}: {failure.how}")
    _show(outcomes)
    raise SystemExit(any(outcome.failed for outcome in outcomes))


def _fuzzed(name: str, first: int, last: int, out: Path) -> Outcome:
    saved = time.monotonic()

    def progress(outcome: Outcome) -> None:
        nonlocal saved
        if time.monotonic() - saved > SAVED_EVERY_S:
            saved = time.monotonic()
            _save(outcome, out)

    outcome = fuzz(SUBJECTS[name], first, last, progress)
    _save(outcome, out)
    return outcome


def _save(outcome: Outcome, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"fuzz-{outcome.subject}.json").write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")


def _show(outcomes: Iterable[Outcome]) -> None:
    rows = (
        (
            outcome.subject,
            *map(str, (outcome.mutants, outcome.accepted, outcome.failed)),
            f"{outcome.slowest[0]:.2f} s (number {outcome.slowest[1]})",
            f"{outcome.largest[0]:.0f} MB (number {outcome.largest[1]})",
        )
        for outcome in outcomes
    )
    tables.show_table("", COLUMNS, rows)


if __name__ == "__main__":
    main()

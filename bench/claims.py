"""Which claims of the shipped experiments can come out either way? Starts nothing.

For each experiment, in its own time and with its own repetitions, it prints the number of verdicts on claims of
documents and on our own; how many of them are vacuous, because they hold whatever is measured unless the lab differs
from its plan; and how many have too few samples to be decided.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import InputError
from minigts.experiments import decidable, prepare
from minigts.experiments.prepare import Prepared
from minigts.providers import DEFAULT

KINDS = (decidable.OPEN, decidable.VACUOUS, decidable.TOO_FEW)
HEADS = ("experiment", "time", ">claims left out", ">verdicts", ">can be either", ">vacuous", ">too few")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "files", nargs="*", type=Path, default=sorted((stage.PROJECT / "experiments").rglob("*.yaml"))
    )
    arguments.add_argument("--time", choices=["real", "virtual"])
    chosen = arguments.parse_args()
    rows, sums = [], {True: Counter[str](), False: Counter[str]()}
    for file in chosen.files:
        try:
            several = prepare.prepare_sweep(file, paper=False, quick=False, only=(), time=chosen.time, leaving_out=True)
        except InputError as error:
            console.note(f"{file.name}: {error}")
            continue
        found = decidable.count_verdicts(several[0], DEFAULT)
        for sourced, own in found.items():
            sums[sourced].update(own)
        rows.append((several[0].experiment.name, several[0].plan.time, _left_out(several[0]), *_in_words(found)))
    tables.show_table(
        "Verdicts: of claims of documents + of our own", HEADS, [*rows, ("all", "", "", *_in_words(sums))]
    )


def _left_out(prepared: Prepared) -> str:
    return str(sum(part.kind == "claim" for part in prepared.left_out))


def _in_words(found: dict[bool, Counter[str]]) -> tuple[str, ...]:
    return (
        f"{found[True].total()} + {found[False].total()}",
        *(
            f"{found[True][word]} + {found[False][word]}"
            for word in (decidable.OPEN, decidable.VACUOUS, decidable.TOO_FEW)
        ),
    )


if __name__ == "__main__":
    stage.perform(main)

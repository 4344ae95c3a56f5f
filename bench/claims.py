"""Which claims of the shipped experiments can come out either way? Starts nothing.

For each experiment, in its own time and with its own repetitions: how many verdicts it makes, on claims of documents
and on our own; how many of them are vacuous there whatever is measured, unless the lab is not as its plan; and how
many have too few samples to be decided at all.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from bench import stage
from minigts.cli import screen, tables
from minigts.errors import InputError
from minigts.experiments import campaign, meaning
from minigts.experiments.campaign import Prepared
from minigts.experiments.claims import foreseen
from minigts.experiments.derive import Taken, summarise
from minigts.judge.cells import ENOUGH
from minigts.providers import DEFAULT
from minigts.results.schema import RawSample
from minigts.tools.base import Measured

HEADS = ("experiment", "time", ">claims left out", ">verdicts", ">can be either", ">vacuous", ">too few")


def counted(prepared: Prepared) -> dict[bool, Counter[str]]:
    """Of the claims of documents, and of our own, how many verdicts are which."""
    manifest = campaign.manifest_of(prepared, DEFAULT)
    cells = summarise(manifest, [_made_up(prepared, index) for index in range(len(prepared.samples))])
    found: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    few = prepared.plan.time == "real" and prepared.experiment.repetitions < ENOUGH
    for claim in meaning.claims(manifest):
        for what in foreseen(claim, cells, prepared.plan, prepared.experiment).values():
            found[bool(claim.source)]["vacuous" if what is not None else "few" if few else "open"] += 1
    return found


def _made_up(prepared: Prepared, index: int) -> Taken:
    """A sample of no figure that counts: only its place does."""
    sample = prepared.samples[index]
    tool = prepared.experiment.measurement(sample.measurement).instrument
    raw = RawSample(
        sample=sample.id, host=sample.source, argv=(), code=0, stdout="", stderr="", started="", seconds=0.0, attempt=1
    )
    return Taken(sample, raw, 1, 0, Measured(1.0, {column.name: 1.0 for column in tool.columns}), "")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "files", nargs="*", type=Path, default=sorted((stage.PROJECT / "experiments").glob("*.yaml"))
    )
    arguments.add_argument("--time", choices=["real", "virtual"])
    chosen = arguments.parse_args()
    rows, sums = [], {True: Counter[str](), False: Counter[str]()}
    for file in chosen.files:
        try:
            several = campaign.prepare_sweep(
                file, paper=False, quick=False, only=(), time=chosen.time, leaving_out=True
            )
        except InputError as error:
            screen.note(f"{file.name}: {error}")
            continue
        found = counted(several[0])
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
        *(f"{found[True][word]} + {found[False][word]}" for word in ("open", "vacuous", "few")),
    )


if __name__ == "__main__":
    stage.perform(main)

"""The runs of a sweep, one for each lab, read as one run in which the topology's values vary too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from minigts.judge.verdicts import Word, together
from minigts.report import read
from minigts.report.read import Results
from minigts.results import manifest as manifests
from minigts.results import store, sweeps
from minigts.results.schema import Claim, Manifest
from minigts.results.tables import NothingYet, Samples, SummaryRow

NAMED = 5
"""So many labs in which a claim does not hold are named."""


def is_sweep(directory: Path) -> bool:
    """Whether the runs of a sweep's labs lie inside, and nothing else."""
    if not directory.is_dir() or store.is_run(directory):
        return False
    return any(run.parent == directory and store.is_cell(run) for run in store.runs_in(directory))


def read_sweep(directory: Path) -> Results:
    """All labs' results together. A row's settings begin with its lab's values; a claim's verdict is the gravest of its
    labs', and says in how many it holds. Raises InputError, also when no lab has samples yet.
    """
    runs = labs_of(directory)
    found: list[Results] = []
    waiting = [manifests.read(run) for run in runs]
    for run, known in zip(runs, waiting, strict=True):
        try:
            found.append(read.read(run, known))
        except NothingYet:
            continue
    if not found:
        raise NothingYet(f"{directory}: holds no samples yet in {len(runs)} labs")
    return Results(
        directory=directory,
        manifest=_together(waiting),
        samples=_counted(each.samples for each in found),
        summary=tuple(row for each in found for row in _placed(each)),
        claims=tuple(_claims(found)),
        files=tuple(name for each in sweeps.TABLES if (directory / (name := sweeps.ALL + each)).exists()),
        labs=tuple(each.directory.name for each in found),
        experiment=f"{directory.resolve().name}/{found[0].experiment}" if found[0].experiment else "",
    )


def _in_order(name: str) -> list[tuple[float, str]]:
    """Numbers as numbers: `chain.hosts=9` before `chain.hosts=10`."""
    return [(float(part), "") if number else (0.0, part) for part, number in _parts(name)]


def _parts(name: str) -> Iterator[tuple[str, bool]]:
    for index, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", name)):
        yield part, index % 2 == 1


def _together(labs: Sequence[Manifest]) -> Manifest:
    """The first lab's, with all values that any has."""
    first = labs[0]
    swept = {
        place: tuple(dict.fromkeys(lab.experiment.vary[place][0] for lab in labs)) for place in first.experiment.vary
    }
    measurements = tuple(
        each.model_copy(update={"vary": {**swept, **each.vary}}) for each in first.experiment.measurements
    )
    ended = [lab.ended for lab in labs]
    update = {
        "experiment": first.experiment.model_copy(update={"vary": swept, "measurements": measurements}),
        "samples_planned": sum(lab.samples_planned for lab in labs),
        "skipped": {name: why for lab in labs for name, why in lab.skipped.items()},
        "started": min(lab.started for lab in labs),
        "ended": None if None in ended else max(filter(None, ended)),
    }
    return first.model_copy(update=update)


def _counted(several: Iterator[Samples]) -> Samples:
    total = Samples()
    for each in several:
        total.total += each.total
        total.failed += each.failed
        total.repeated += each.repeated
        total.retaken += each.retaken
        total.tainted += each.tainted
        for own, further in ((total.errors, each.errors), (total.taints, each.taints), (total.notes, each.notes)):
            own.update(further)
    return total


def _placed(lab: Results) -> Iterator[SummaryRow]:
    assert lab.manifest is not None  # of a run without one nobody knows that it is of a sweep
    values = tuple(lab.manifest.experiment.values.items())
    for row in lab.summary:
        yield replace(row, settings=(*values, *row.settings))


def labs_of(directory: Path) -> list[Path]:
    """The folders of a sweep's labs, in the order of their values."""
    return sorted(store.runs_in(directory), key=lambda run: _in_order(run.name))


def _claims(labs: Sequence[Results]) -> Iterator[Claim]:
    told: dict[tuple[str, str], list[tuple[str, Claim]]] = {}
    for lab in labs:
        for claim in lab.claims:
            told.setdefault((claim.claim, claim.overlay), []).append((lab.directory.name, claim))
    for several in told.values():
        counts = Counter(claim.verdict for _, claim in several)
        gravest = together([claim.verdict for _, claim in several])
        good: tuple[Word, ...] = ("held", "vacuous")
        named = [word for word in good if counts[word]] or [*good[:1]]
        held = f"{', '.join(f'{word} in {counts[word]}' for word in named)} of {len(several)} labs"
        others = [
            f"{name} ({claim.verdict}: {claim.detail})"
            for name, claim in several
            if claim.verdict not in ("held", "vacuous")
        ]
        more = [f"{len(others) - NAMED} more"] if len(others) > NAMED else []
        detail = "; not in ".join([held, *([", ".join([*others[:NAMED], *more])] if others else [])])
        yield several[0][1].model_copy(update={"verdict": gravest, "detail": detail})
